package woocommerce

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"storefront.internal/control/internal/outbound"
	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/provider/payload"
	"storefront.internal/control/internal/provider/remote"
	"storefront.internal/shared/catalog"
	"storefront.internal/shared/settings"
)

// Name is the provider's name in operations 5 and 12.
const Name = "woocommerce"

// DefaultBase is where stores are called; {store} stands for the store's host, with the directory of its site if it is in one.
const DefaultBase = "https://{store}/wp-json/wc/v3"

// Config tells how to call. Only HTTP is required.
type Config struct {
	HTTP    *outbound.Client
	Gate    *outbound.Gate // nil: Budget
	BaseURL string         // with {store}, which then stands for the escaped external id; "": DefaultBase
}

// Budget is our own: the shop names no limit, and its host serves shoppers too.
func Budget() outbound.Budget { return outbound.Budget{Capacity: 1e9, Refill: 1e9, Flights: flights} }

const flights = 2

// Adapter is the provider.Adapter of WooCommerce.
type Adapter struct {
	api  remote.API
	base string // "" in production
}

// New returns the adapter, or says what its configuration lacks.
func New(cfg Config) (*Adapter, error) {
	if cfg.HTTP == nil {
		return nil, errors.New("woocommerce: a client is required")
	}
	if cfg.Gate == nil {
		cfg.Gate = outbound.NewGate(Budget(), 5*time.Second)
	}
	if cfg.BaseURL != "" && !strings.Contains(cfg.BaseURL, "{store}") {
		return nil, errors.New("woocommerce: the base URL names no {store}")
	}
	return &Adapter{api: remote.API{HTTP: cfg.HTTP, Gate: cfg.Gate}, base: strings.TrimRight(cfg.BaseURL, "/")}, nil
}

// Name implements provider.Adapter.
func (*Adapter) Name() string { return Name }

// Verify implements provider.Adapter: standard base64.
func (*Adapter) Verify(secrets []settings.Secret, signature string, body []byte) bool {
	return provider.VerifyHMAC(provider.Base64, secrets, signature, body)
}

// Ping implements provider.Adapter: the form "webhook_id=n" comes unsigned when a webhook is made, and wants a 200.
func (*Adapter) Ping(body []byte) bool {
	id, found := strings.CutPrefix(string(body), "webhook_id=")
	return found && isNumber(id)
}

func isNumber(s string) bool {
	return s != "" && len(s) <= 20 && strings.Trim(s, "0123456789") == ""
}

// root returns the URL of a store's API. The store is input of the merchant's: what is no plain public host, with at most
// a plain directory, is refused here, and by the guard again.
func (a *Adapter) root(s provider.Store) (string, error) {
	if a.base != "" {
		return strings.ReplaceAll(a.base, "{store}", url.PathEscape(s.ExternalStoreID)), nil
	}
	for _, where := range []string{s.ExternalStoreID, s.Profile.Domain} {
		if site, ok := site(where); ok {
			return strings.ReplaceAll(DefaultBase, "{store}", site), nil
		}
	}
	return "", &provider.Rejected{Reason: provider.Reason(outbound.Forbidden)}
}

// site reads "shop.example.org", "https://shop.example.org/" or "https://example.org/shop".
func site(text string) (string, bool) {
	text = strings.ToLower(strings.TrimSpace(text))
	text = strings.TrimRight(strings.TrimPrefix(text, "https://"), "/")
	host, directory, nested := strings.Cut(text, "/")
	const plain = "abcdefghijklmnopqrstuvwxyz0123456789-_/"
	if !outbound.PublicName(host) || nested && (strings.Trim(directory, plain) != "" || strings.Contains(text, "//")) {
		return "", false
	}
	return text, true
}

// call makes one call of a store's path. An error that the shop itself did not make is none of its refusals.
func (a *Adapter) call(ctx context.Context, s provider.Store, method, path string, query url.Values, send any) (*outbound.Answer, error) {
	root, err := a.root(s)
	if err != nil {
		return nil, err
	}
	key, secret, ok := strings.Cut(s.Credential.Reveal(), ":")
	if !ok || key == "" || secret == "" {
		return nil, &provider.Refused{}
	}
	r := outbound.Request{Method: method, URL: root + path, Header: http.Header{}}
	if len(query) > 0 {
		r.URL += "?" + query.Encode()
	}
	r.Header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(key+":"+secret)))
	r.Header.Set("User-Agent", "storefront")
	r.Header.Set("Accept", "application/json")
	if send != nil {
		if r.Body, err = json.Marshal(send); err != nil {
			return nil, &provider.Rejected{Reason: provider.ReasonInternal}
		}
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := a.api.Do(ctx, s, 1, r)
	return answer, believed(answer, err)
}

// believed turns refusals and "not found" into a passing fault, unless the shop's own code comes with them: a firewall's
// 403 revokes nothing, and a 404 of a site whose routes are off deletes nothing.
func believed(a *outbound.Answer, err error) error {
	var refused *provider.Refused
	if !errors.Is(err, provider.ErrGone) && !errors.As(err, &refused) || a == nil {
		return err
	}
	code := codeOf(a)
	if code == "" || errors.Is(err, provider.ErrGone) && !strings.HasPrefix(code, "woocommerce_rest_") {
		return &provider.Temporary{Reason: provider.ReasonContentType, Status: a.Status}
	}
	return err
}

// codeOf returns the code of the shop's own error, "" when it is none.
func codeOf(a *outbound.Answer) string {
	var e struct {
		Code payload.Text `json:"code"`
	}
	if a == nil || !remote.IsJSON(a) || payload.Decode(a.Body, &e) != nil {
		return ""
	}
	return string(e.Code)
}

// Profile implements provider.Adapter. A key that may not read the shop's settings opens the rest all the same.
func (a *Adapter) Profile(ctx context.Context, s provider.Store) (provider.Profile, error) {
	answer, err := a.call(ctx, s, http.MethodGet, "/system_status", url.Values{"_fields": {"environment,settings"}}, nil)
	if err != nil {
		return provider.Profile{}, err
	}
	var status struct {
		Environment struct {
			SiteURL  payload.Text `json:"site_url"`
			Language payload.Text `json:"language"`
		} `json:"environment"`
		Settings struct {
			Currency payload.Text `json:"currency"`
		} `json:"settings"`
	}
	if err := remote.Decode(answer, &status); err != nil {
		return provider.Profile{}, err
	}
	p := provider.Profile{Currency: string(status.Settings.Currency), Domain: s.Profile.Domain}
	if status.Environment.Language != "" {
		p.Language = payload.Language(string(status.Environment.Language))
	}
	if site, ok := site(string(status.Environment.SiteURL)); ok {
		p.Domain = site
	}
	return p, nil
}

func path(e catalog.Entity) string {
	switch e {
	case catalog.Product:
		return "/products"
	case catalog.Category:
		return "/products/categories"
	default:
		return "/orders"
	}
}
