package shopify

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	"storefront.internal/control/internal/outbound"
	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/provider/payload"
	"storefront.internal/control/internal/provider/remote"
	"storefront.internal/shared/settings"
)

// Name is the provider's name in control's API.
const Name = "shopify"

// DefaultBase is the base URL of shops; {store} stands for the shop's domain.
const DefaultBase = "https://{store}"

// DefaultVersion is the API version that the queries are written for.
const DefaultVersion = "2026-07"

// Config configures the adapter. Only HTTP is required.
type Config struct {
	HTTP        *outbound.Client
	RateLimiter *outbound.RateLimiter // nil: Limits
	BaseURL     string                // with {store} for the escaped external id; "": DefaultBase
	Version     string                // "": DefaultVersion
}

// Limits are those of the standard plan, in points. Responses tell a shop's real limits.
func Limits() outbound.Limits { return outbound.Limits{Capacity: 2000, Refill: 100, MaxInFlight: 4} }

// Adapter is the provider.Adapter of Shopify.
type Adapter struct {
	api       remote.API
	base      string // "" in production
	version   string
	chunkSize int64 // of a bulk file, in bytes
}

// New returns the adapter, or an error for an incomplete configuration.
func New(cfg Config) (*Adapter, error) {
	if cfg.HTTP == nil {
		return nil, errors.New("shopify: a client is required")
	}
	if cfg.RateLimiter == nil {
		cfg.RateLimiter = outbound.NewRateLimiter(Limits(), 5*time.Second)
	}
	if cfg.BaseURL != "" && !strings.Contains(cfg.BaseURL, "{store}") {
		return nil, errors.New("shopify: the base URL names no {store}")
	}
	if cfg.Version == "" {
		cfg.Version = DefaultVersion
	}
	const chunkSize = 1 << 20
	return &Adapter{api: remote.API{HTTP: cfg.HTTP, RateLimiter: cfg.RateLimiter, Feedback: costFeedback},
		base: strings.TrimRight(cfg.BaseURL, "/"), version: cfg.Version, chunkSize: chunkSize}, nil
}

// Name implements provider.Adapter.
func (*Adapter) Name() string { return Name }

// VerifySignature implements provider.Adapter: signatures are in standard base64.
func (*Adapter) VerifySignature(secrets []settings.Secret, signature string, body []byte) bool {
	return provider.VerifyHMAC(provider.Base64Signature, secrets, signature, body)
}

// IsPing implements provider.Adapter: Shopify does not test addresses.
func (*Adapter) IsPing([]byte) bool { return false }

// endpoint returns the URL of a shop's GraphQL endpoint.
func (a *Adapter) endpoint(s provider.Shop) (string, error) {
	path := "/admin/api/" + a.version + "/graphql.json"
	if a.base != "" {
		return strings.ReplaceAll(a.base, "{store}", url.PathEscape(s.ExternalStoreID)) + path, nil
	}
	for _, domain := range []string{s.ExternalStoreID, s.Profile.Domain} {
		if domain = strings.ToLower(strings.TrimSpace(domain)); isShopDomain(domain) {
			return strings.ReplaceAll(DefaultBase, "{store}", domain) + path, nil
		}
	}
	return "", &provider.RequestRejected{Reason: provider.Reason(outbound.AddressForbidden)}
}

// isShopDomain reports whether a domain is one that the provider gives to shops: no other host gets a
// credential.
func isShopDomain(domain string) bool {
	shop, found := strings.CutSuffix(domain, ".myshopify.com")
	return found && !strings.Contains(shop, ".") && outbound.PublicName(domain)
}

// Profile implements provider.Adapter. It asks for no contact data.
func (a *Adapter) Profile(ctx context.Context, s provider.Shop) (provider.Profile, error) {
	var data struct {
		Shop *struct {
			Name            payload.Text `json:"name"`
			MyshopifyDomain payload.Text `json:"myshopifyDomain"`
			CurrencyCode    payload.Text `json:"currencyCode"`
			PrimaryDomain   struct {
				Localization struct {
					DefaultLocale payload.Text `json:"defaultLocale"`
					Country       payload.Text `json:"country"`
				} `json:"localization"`
			} `json:"primaryDomain"`
		} `json:"shop"`
	}
	if err := a.query(ctx, s, queryShop, nil, 10, &data); err != nil {
		return provider.Profile{}, err
	}
	if data.Shop == nil {
		return provider.Profile{}, &provider.Temporary{Reason: provider.ReasonInvalidJSON}
	}
	p := provider.Profile{Name: string(data.Shop.Name), Domain: string(data.Shop.MyshopifyDomain),
		Currency: string(data.Shop.CurrencyCode),
		Language: string(data.Shop.PrimaryDomain.Localization.DefaultLocale),
		Country:  string(data.Shop.PrimaryDomain.Localization.Country)}
	if p.Language == "" {
		p.Language = a.primaryLocale(ctx, s)
	}
	return p, nil
}

// primaryLocale asks for the primary locale when the domain does not have one. The call needs a scope that an
// app may lack; the locale is unknown then.
func (a *Adapter) primaryLocale(ctx context.Context, s provider.Shop) string {
	var data struct {
		Locales payload.List[struct {
			Locale  string `json:"locale"`
			Primary bool   `json:"primary"`
		}] `json:"shopLocales"`
	}
	if a.query(ctx, s, queryLocales, nil, 10, &data) != nil {
		return ""
	}
	for _, l := range data.Locales {
		if l.Primary {
			return l.Locale
		}
	}
	return ""
}
