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

// Name is the provider's name in operations 5 and 12.
const Name = "shopify"

// DefaultBase is where shops are called; {store} stands for the shop's domain.
const DefaultBase = "https://{store}"

// DefaultVersion is the version of the API that the queries are written for.
const DefaultVersion = "2026-07"

// Config tells how to call. Only HTTP is required.
type Config struct {
	HTTP    *outbound.Client
	Gate    *outbound.Gate // nil: Budget
	BaseURL string         // with {store}, which then stands for the escaped external id; "": DefaultBase
	Version string         // "": DefaultVersion
}

// Budget is that of the standard plan, in points. Answers say what a shop really has.
func Budget() outbound.Budget { return outbound.Budget{Capacity: 2000, Refill: 100, Flights: 4} }

// Adapter is the provider.Adapter of Shopify.
type Adapter struct {
	api     remote.API
	base    string // "" in production
	version string
	piece   int64 // of a bulk file, in bytes
}

// New returns the adapter, or says what its configuration lacks.
func New(cfg Config) (*Adapter, error) {
	if cfg.HTTP == nil {
		return nil, errors.New("shopify: a client is required")
	}
	if cfg.Gate == nil {
		cfg.Gate = outbound.NewGate(Budget(), 5*time.Second)
	}
	if cfg.BaseURL != "" && !strings.Contains(cfg.BaseURL, "{store}") {
		return nil, errors.New("shopify: the base URL names no {store}")
	}
	if cfg.Version == "" {
		cfg.Version = DefaultVersion
	}
	const piece = 1 << 20
	return &Adapter{api: remote.API{HTTP: cfg.HTTP, Gate: cfg.Gate, Report: report}, base: strings.TrimRight(cfg.BaseURL, "/"), version: cfg.Version, piece: piece}, nil
}

// Name implements provider.Adapter.
func (*Adapter) Name() string { return Name }

// Verify implements provider.Adapter: standard base64.
func (*Adapter) Verify(secrets []settings.Secret, signature string, body []byte) bool {
	return provider.VerifyHMAC(provider.Base64, secrets, signature, body)
}

// Ping implements provider.Adapter: Shopify tries no address.
func (*Adapter) Ping([]byte) bool { return false }

// endpoint returns where a shop's queries go.
func (a *Adapter) endpoint(s provider.Store) (string, error) {
	path := "/admin/api/" + a.version + "/graphql.json"
	if a.base != "" {
		return strings.ReplaceAll(a.base, "{store}", url.PathEscape(s.ExternalStoreID)) + path, nil
	}
	for _, domain := range []string{s.ExternalStoreID, s.Profile.Domain} {
		if domain = strings.ToLower(strings.TrimSpace(domain)); isShop(domain) {
			return strings.ReplaceAll(DefaultBase, "{store}", domain) + path, nil
		}
	}
	return "", &provider.Rejected{Reason: provider.Reason(outbound.Forbidden)}
}

// isShop reports whether a domain is one that the provider gave a shop: no other host sees a credential.
func isShop(domain string) bool {
	shop, found := strings.CutSuffix(domain, ".myshopify.com")
	return found && !strings.Contains(shop, ".") && outbound.PublicName(domain)
}

// Profile implements provider.Adapter. Nothing of it is a contact.
func (a *Adapter) Profile(ctx context.Context, s provider.Store) (provider.Profile, error) {
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
	p := provider.Profile{Name: string(data.Shop.Name), Domain: string(data.Shop.MyshopifyDomain), Currency: string(data.Shop.CurrencyCode),
		Language: string(data.Shop.PrimaryDomain.Localization.DefaultLocale), Country: string(data.Shop.PrimaryDomain.Localization.Country)}
	if p.Language == "" {
		p.Language = a.locale(ctx, s)
	}
	return p, nil
}

// locale asks for the primary locale where the domain does not tell. It needs a scope that an app may not have, and is
// then unknown.
func (a *Adapter) locale(ctx context.Context, s provider.Store) string {
	var data struct {
		Locales []struct {
			Locale  string `json:"locale"`
			Primary bool   `json:"primary"`
		} `json:"shopLocales"`
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
