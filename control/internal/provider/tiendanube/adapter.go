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

// Name is the provider's name in control's API.
const Name = "tiendanube"

// DefaultBase is the base URL of shops; {store} stands for the shop's id.
const DefaultBase = "https://api.tiendanube.com/2025-03/{store}"

// Config configures the adapter. Only HTTP and UserAgent are required.
type Config struct {
	HTTP        *outbound.Client
	RateLimiter *outbound.RateLimiter // nil: Limits
	BaseURL     string                // with {store}; "": DefaultBase
	UserAgent   string                // app and contact; the provider requires it

	// BearerHeader sends the credential as "Authorization: Bearer", as the provider's newest documentation
	// says, in place of "Authentication: bearer".
	BearerHeader bool
}

// Limits are those of an app and a shop: 40 calls, 2 per second. Responses tell those of higher plans.
func Limits() outbound.Limits { return outbound.Limits{Capacity: 40, Refill: 2, MaxInFlight: 8} }

// Adapter is the provider.Adapter of Tiendanube.
type Adapter struct {
	api  remote.API
	base string
	cfg  Config
}

// New returns the adapter, or an error for an incomplete configuration.
func New(cfg Config) (*Adapter, error) {
	if cfg.HTTP == nil || strings.TrimSpace(cfg.UserAgent) == "" {
		return nil, errors.New("tiendanube: a client and a user agent are required")
	}
	if cfg.RateLimiter == nil {
		cfg.RateLimiter = outbound.NewRateLimiter(Limits(), 2*time.Second)
	}
	if cfg.BaseURL == "" {
		cfg.BaseURL = DefaultBase
	}
	if !strings.Contains(cfg.BaseURL, "{store}") {
		return nil, errors.New("tiendanube: the base URL names no {store}")
	}
	return &Adapter{api: remote.API{HTTP: cfg.HTTP, RateLimiter: cfg.RateLimiter, Feedback: bucketFeedback},
		base: strings.TrimRight(cfg.BaseURL, "/"), cfg: cfg}, nil
}

// Name implements provider.Adapter.
func (*Adapter) Name() string { return Name }

// VerifySignature implements provider.Adapter: signatures are in hexadecimal.
func (*Adapter) VerifySignature(secrets []settings.Secret, signature string, body []byte) bool {
	return provider.VerifyHMAC(provider.HexSignature, secrets, signature, body)
}

// IsPing implements provider.Adapter: Tiendanube does not test addresses.
func (*Adapter) IsPing([]byte) bool { return false }

// bucketFeedback reads the state of the leaky bucket. The reset is in milliseconds until the bucket is empty.
func bucketFeedback(a *outbound.Response) outbound.Feedback {
	limit, err := strconv.ParseFloat(a.Header.Get("X-Rate-Limit-Limit"), 64)
	remaining, err2 := strconv.ParseFloat(a.Header.Get("X-Rate-Limit-Remaining"), 64)
	if err != nil || err2 != nil || !(limit > 0) || !(remaining >= 0) || limit > 1e6 {
		return outbound.Feedback{}
	}
	r := outbound.Feedback{Known: true, Capacity: limit, Available: remaining}
	if reset, err := strconv.ParseFloat(a.Header.Get("X-Rate-Limit-Reset"), 64); err == nil && reset > 0 &&
		limit > remaining {
		r.Refill = min(max((limit-remaining)/(reset/1000), 0.1), 1000)
	}
	return r
}

// call makes one call for a shop. Request and response are JSON.
func (a *Adapter) call(
	ctx context.Context, s provider.Shop, request remote.Request,
) (*outbound.Response, error) {
	if !payload.IsNumber(s.ExternalStoreID) {
		return nil, &provider.RequestRejected{Reason: provider.ReasonRequestRejected}
	}
	r, err := request.At(strings.ReplaceAll(a.base, "{store}", s.ExternalStoreID))
	if err != nil {
		return nil, err
	}
	if a.cfg.BearerHeader {
		r.Header.Set("Authorization", "Bearer "+s.Credential.Reveal())
	} else {
		r.Header.Set("Authentication", "bearer "+s.Credential.Reveal())
	}
	r.Header.Set("User-Agent", a.cfg.UserAgent)
	return a.api.Do(ctx, s, 1, r, request.Read)
}

// Profile implements provider.Adapter. It asks for no contact data.
func (a *Adapter) Profile(ctx context.Context, s provider.Shop) (provider.Profile, error) {
	var shop struct {
		Name           payload.Texts   `json:"name"`
		Country        payload.Text    `json:"country"`
		Currency       payload.Text    `json:"main_currency"`
		Language       payload.Text    `json:"main_language"`
		OriginalDomain payload.Text    `json:"original_domain"`
		Domains        json.RawMessage `json:"domains"`
	}
	query := url.Values{"fields": {"id,name,country,main_currency,main_language,original_domain,domains"}}
	_, err := a.call(ctx, s, remote.Request{Method: http.MethodGet, Path: "/store", Query: query,
		MaxBody: outbound.MaxSmall, Read: remote.Into(&shop)})
	if err != nil {
		return provider.Profile{}, err
	}
	p := provider.Profile{Country: string(shop.Country), Currency: string(shop.Currency),
		Language: string(shop.Language), Domain: string(shop.OriginalDomain)}
	var domains payload.List[payload.Text]
	if json.Unmarshal(shop.Domains, &domains) == nil && len(domains) > 0 && domains[0] != "" {
		p.Domain = string(domains[0])
	}
	if p.Name = shop.Name.Single; shop.Name.ByLanguage != nil {
		p.Name = shop.Name.ByLanguage[p.Language]
	}
	return p, nil
}

// listPath is the path of an entity's listing.
func listPath(e catalog.Entity) string {
	switch e {
	case catalog.Product:
		return "/products"
	case catalog.Category:
		return "/categories"
	default:
		return "/orders"
	}
}
