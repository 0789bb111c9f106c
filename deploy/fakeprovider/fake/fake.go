// Package fake puts the fakes of the platforms behind one handler: the APIs at /tiendanube/…,
// /shopify/{shop}/… and /woocommerce/{store}/…, the debug routes at the root and below each provider, and the
// receiver that forwards webhooks to control. A call whose access token begins with `demo-` opens a store,
// which is generated from the seed on first sight. The debug routes need no token: the fakes are for the
// local stack and for tests.
//
// Base URLs: /tiendanube/2025-03/{store}, /shopify/{shop}/admin/api/{version}/graphql.json and
// /woocommerce/{store}/wp-json/wc/v3.
package fake

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"storefront.internal/deploy/fakeprovider/behaviour"
	"storefront.internal/deploy/fakeprovider/catalogue"
	"storefront.internal/deploy/fakeprovider/forward"
	"storefront.internal/deploy/fakeprovider/hooks"
	"storefront.internal/deploy/fakeprovider/shopify"
	"storefront.internal/deploy/fakeprovider/stores"
	"storefront.internal/deploy/fakeprovider/tiendanube"
	"storefront.internal/deploy/fakeprovider/woocommerce"
)

// Config of the fakes. Zero values are what the local stack wants.
type Config struct {
	Seed        uint64
	Products    int  // of each store; 0 is DefaultProducts
	Orders      int  // of each store; 0 is DefaultOrders
	Empty       bool // stores begin without products, categories and orders
	AppSecret   string
	FirstStores map[string]string // by provider: the store that is there before any call
	Unthrottled bool              // no rate limits
	Plan        int               // multiplies the rate limits; 0 is 1
	StrictURLs  bool              // webhook URLs must be https and no local host, as at the real providers
	Receiver    string            // base URL that replaces that of registered webhook URLs; "": none
	Forward     *forward.Config   // nil: no receiver at /hooks/
	Now         func() time.Time  // nil: time.Now
	Retries     []time.Duration   // waits between attempts at a webhook; nil: the providers' own
}

// The defaults.
const (
	DefaultProducts  = 2000
	DefaultOrders    = 40
	DefaultStore     = "1001001"
	DefaultShop      = "demo.myshopify.com"
	DefaultWooStore  = "shop.example"
	DefaultAppSecret = "demo-app-secret"
)

// Names of the providers, as control has them.
const (
	Tiendanube  = "tiendanube"
	Shopify     = "shopify"
	WooCommerce = "woocommerce"
)

// provider is what the debug routes need of a fake.
type provider interface {
	http.Handler
	Stores() []string
	IDs(store, kind string) ([]int64, error)
	Get(store, kind, id string) (json.RawMessage, error)
	Patch(store, kind, id string, patch []byte) (created bool, err error)
	Delete(store, kind, id string) error
	SendWebhook(store, topic, id string, o hooks.Options) ([]hooks.Delivery, error)
	Subscriptions(store string) []hooks.Hook
	SetState(store string, s stores.State)
	SetBehaviour(b behaviour.Behaviour)
}

// Server is the fakes of all platforms.
type Server struct {
	providers map[string]provider
	sender    *hooks.Sender
	receiver  *forward.Receiver
}

// New makes the fakes.
func New(c Config) *Server {
	sender := hooks.NewSender(c.Receiver)
	common := c.stores(sender)
	of := func(name, first string) stores.Config {
		one := common
		if one.FirstStore = c.FirstStores[name]; one.FirstStore == "" {
			one.FirstStore = first
		}
		return one
	}
	s := &Server{sender: sender, providers: map[string]provider{
		Tiendanube:  tiendanube.New(of(Tiendanube, DefaultStore)),
		Shopify:     shopify.New(of(Shopify, DefaultShop)),
		WooCommerce: woocommerce.New(of(WooCommerce, DefaultWooStore)),
	}}
	if c.Forward != nil {
		s.receiver = forward.New(*c.Forward)
	}
	return s
}

func (c Config) stores(sender *hooks.Sender) stores.Config {
	out := stores.Config{
		Seed: c.Seed, Products: c.Products, Orders: c.Orders, AppSecret: c.AppSecret,
		StrictURLs:  c.StrictURLs,
		Unthrottled: c.Unthrottled, Plan: c.Plan, Sender: sender, Now: c.Now, Retries: c.Retries,
	}
	if out.Products == 0 {
		out.Products = DefaultProducts
	}
	if out.Orders == 0 {
		out.Orders = DefaultOrders
	}
	if out.Categories = catalogue.Categories; c.Empty {
		out.Products, out.Categories, out.Orders = 0, 0, 0
	}
	if out.AppSecret == "" {
		out.AppSecret = DefaultAppSecret
	}
	if out.Now == nil {
		out.Now = time.Now
	}
	return out
}

// Close cancels pending and running deliveries of webhooks.
func (s *Server) Close() { s.sender.Close() }

// Handler serves everything.
func (s *Server) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		head, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		p, isProvider := s.providers[head]
		switch {
		case head == "debug":
			s.debug("").ServeHTTP(w, r)
		case head == "hooks" && s.receiver != nil:
			s.receiver.ServeHTTP(w, r)
		case isProvider && strings.HasPrefix(rest, "debug/"):
			http.StripPrefix("/"+head, s.debug(head)).ServeHTTP(w, r)
		case isProvider:
			http.StripPrefix("/"+head, p).ServeHTTP(w, r)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	})
}
