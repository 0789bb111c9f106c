package tiendanube

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
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
const Name = "tiendanube"

// DefaultBase is where stores are called; {store} stands for the store's id.
const DefaultBase = "https://api.tiendanube.com/2025-03/{store}"

// Config tells how to call. Only HTTP and UserAgent are required.
type Config struct {
	HTTP      *outbound.Client
	Gate      *outbound.Gate // nil: one of the provider's published limits
	BaseURL   string         // with {store}; "": DefaultBase
	UserAgent string         // app and contact; a call without one is a 400

	// BearerHeader sends the credential as "Authorization: Bearer", as the newest pages of the provider have it, in place of
	// "Authentication: bearer".
	BearerHeader bool
}

// Budget is the leaky bucket of an app and a store: 40 calls, 2 per second. Higher plans say so in their answers.
func Budget() outbound.Budget { return outbound.Budget{Capacity: 40, Refill: 2, Flights: 8} }

// Adapter is the provider.Adapter of Tiendanube.
type Adapter struct {
	api  remote.API
	base string
	cfg  Config
}

// New returns the adapter, or says what its configuration lacks.
func New(cfg Config) (*Adapter, error) {
	if cfg.HTTP == nil || strings.TrimSpace(cfg.UserAgent) == "" {
		return nil, errors.New("tiendanube: a client and a user agent are required")
	}
	if cfg.Gate == nil {
		cfg.Gate = outbound.NewGate(Budget(), 2*time.Second)
	}
	if cfg.BaseURL == "" {
		cfg.BaseURL = DefaultBase
	}
	if !strings.Contains(cfg.BaseURL, "{store}") {
		return nil, errors.New("tiendanube: the base URL names no {store}")
	}
	return &Adapter{api: remote.API{HTTP: cfg.HTTP, Gate: cfg.Gate, Report: report}, base: strings.TrimRight(cfg.BaseURL, "/"), cfg: cfg}, nil
}

// Name implements provider.Adapter.
func (*Adapter) Name() string { return Name }

// Verify implements provider.Adapter: hexadecimal digits.
func (*Adapter) Verify(secrets []settings.Secret, signature string, body []byte) bool {
	return provider.VerifyHMAC(provider.Hex, secrets, signature, body)
}

// Ping implements provider.Adapter: Tiendanube tries no address.
func (*Adapter) Ping([]byte) bool { return false }

// report reads the leaky bucket. The reset is in milliseconds until the bucket is empty.
func report(a *outbound.Answer) outbound.Report {
	limit, err := strconv.ParseFloat(a.Header.Get("X-Rate-Limit-Limit"), 64)
	remaining, err2 := strconv.ParseFloat(a.Header.Get("X-Rate-Limit-Remaining"), 64)
	if err != nil || err2 != nil || !(limit > 0) || !(remaining >= 0) || limit > 1e6 {
		return outbound.Report{}
	}
	r := outbound.Report{Known: true, Capacity: limit, Available: remaining}
	if reset, err := strconv.ParseFloat(a.Header.Get("X-Rate-Limit-Reset"), 64); err == nil && reset > 0 && limit > remaining {
		r.Refill = min(max((limit-remaining)/(reset/1000), 0.1), 1000)
	}
	return r
}

// call makes one call of a store's path. What was sent and what came back is JSON.
func (a *Adapter) call(ctx context.Context, s provider.Store, method, path string, query url.Values, send any) (*outbound.Answer, error) {
	if !isNumber(s.ExternalStoreID) {
		return nil, &provider.Rejected{Reason: provider.ReasonRejected}
	}
	r := outbound.Request{Method: method, URL: strings.ReplaceAll(a.base, "{store}", s.ExternalStoreID) + path, Header: http.Header{}}
	if len(query) > 0 {
		r.URL += "?" + query.Encode()
	}
	if a.cfg.BearerHeader {
		r.Header.Set("Authorization", "Bearer "+s.Credential.Reveal())
	} else {
		r.Header.Set("Authentication", "bearer "+s.Credential.Reveal())
	}
	r.Header.Set("User-Agent", a.cfg.UserAgent)
	r.Header.Set("Accept", "application/json")
	if send != nil {
		body, err := json.Marshal(send)
		if err != nil {
			return nil, &provider.Rejected{Reason: provider.ReasonInternal}
		}
		r.Body = body
		r.Header.Set("Content-Type", "application/json")
	}
	return a.api.Do(ctx, s, 1, r)
}

func isNumber(s string) bool {
	return s != "" && len(s) <= 20 && strings.Trim(s, "0123456789") == ""
}

// Profile implements provider.Adapter. Only what is no contact is asked for.
func (a *Adapter) Profile(ctx context.Context, s provider.Store) (provider.Profile, error) {
	query := url.Values{"fields": {"id,name,country,main_currency,main_language,original_domain,domains"}}
	answer, err := a.call(ctx, s, http.MethodGet, "/store", query, nil)
	if err != nil {
		return provider.Profile{}, err
	}
	var store struct {
		Name           payload.Texts   `json:"name"`
		Country        payload.Text    `json:"country"`
		Currency       payload.Text    `json:"main_currency"`
		Language       payload.Text    `json:"main_language"`
		OriginalDomain payload.Text    `json:"original_domain"`
		Domains        json.RawMessage `json:"domains"`
	}
	if err := remote.Decode(answer, &store); err != nil {
		return provider.Profile{}, err
	}
	p := provider.Profile{Country: string(store.Country), Currency: string(store.Currency), Language: string(store.Language), Domain: string(store.OriginalDomain)}
	var domains []payload.Text
	if json.Unmarshal(store.Domains, &domains) == nil && len(domains) > 0 && domains[0] != "" {
		p.Domain = string(domains[0])
	}
	if p.Name = store.Name.Single; store.Name.By != nil {
		p.Name = store.Name.By[p.Language]
	}
	return p, nil
}

// path of an entity's listing.
func path(e catalog.Entity) string {
	switch e {
	case catalog.Product:
		return "/products"
	case catalog.Category:
		return "/categories"
	default:
		return "/orders"
	}
}
