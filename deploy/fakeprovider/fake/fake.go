// Package fake puts the fakes of the platforms behind one handler: the APIs at /tiendanube/…, /shopify/{shop}/… and
// /woocommerce/{store}/…, the debug routes at the root and below each provider, and the receiver that forwards deliveries to the
// internal surface. It owns what a person or a test may ask of a provider's stores; every store whose access token begins with
// `demo-` is known, made on first sight from the seed. It is for the local stack and for tests: nothing in it is guarded.
//
// Base URLs: /tiendanube/2025-03/{store}, /shopify/{shop}/admin/api/{version}/graphql.json and /woocommerce/{store}/wp-json/wc/v3.
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
	Plan        int               // a plan of so many times the calls; 0 is the cheapest
	StrictURLs  bool              // delivery URLs must be what the real providers take: https, and no host of one's own
	Receiver    string            // deliveries go to this base and the path of the registered URL; "": to the registered URL
	Forward     *forward.Config   // nil: no receiver at /hooks/
	Now         func() time.Time  // nil: time.Now
	Retries     []time.Duration   // nil: the providers' own waits between attempts at a delivery
}

// What a config without them gets.
const (
	DefaultProducts  = 2000
	DefaultOrders    = 40
	DefaultStore     = "1001001"
	DefaultShop      = "demo.myshopify.com"
	DefaultWooStore  = "shop.example"
	DefaultAppSecret = "demo-app-secret"
)

// Names of the providers, as operation 5 has them.
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
	Show(store, kind, id string) (json.RawMessage, error)
	Change(store, kind, id string, patch []byte) (created bool, err error)
	Remove(store, kind, id string) error
	Announce(store, topic, id string, o hooks.Options) ([]hooks.Delivery, error)
	Subscriptions(store string) []hooks.Hook
	SetState(store string, s stores.State)
	Behave(b behaviour.Behaviour)
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
		Seed: c.Seed, Products: c.Products, Orders: c.Orders, AppSecret: c.AppSecret, StrictURLs: c.StrictURLs, Unthrottled: c.Unthrottled, Plan: c.Plan,
		Sender: sender, Now: c.Now, Retries: c.Retries,
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

// Close ends deliveries that wait or are under way.
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
