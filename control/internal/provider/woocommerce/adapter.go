package woocommerce

import (
	"context"
	"encoding/base64"
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

// Name is the provider's name in control's API.
const Name = "woocommerce"

// DefaultBase is the base URL of shops; {store} stands for the shop's host, and the directory of its site if
// it is in one.
const DefaultBase = "https://{store}/wp-json/wc/v3"

// Config configures the adapter. Only HTTP is required.
type Config struct {
	HTTP        *outbound.Client
	RateLimiter *outbound.RateLimiter // nil: Limits
	BaseURL     string                // with {store} for the escaped external id; "": DefaultBase
}

// Limits are our own: the shop names none, and its host serves shoppers too.
func Limits() outbound.Limits {
	return outbound.Limits{Capacity: 1e9, Refill: 1e9, MaxInFlight: maxInFlight}
}

const maxInFlight = 2

// Adapter is the provider.Adapter of WooCommerce.
type Adapter struct {
	api  remote.API
	base string // "" in production
}

// New returns the adapter, or an error for an incomplete configuration.
func New(cfg Config) (*Adapter, error) {
	if cfg.HTTP == nil {
		return nil, errors.New("woocommerce: a client is required")
	}
	if cfg.RateLimiter == nil {
		cfg.RateLimiter = outbound.NewRateLimiter(Limits(), 5*time.Second)
	}
	if cfg.BaseURL != "" && !strings.Contains(cfg.BaseURL, "{store}") {
		return nil, errors.New("woocommerce: the base URL names no {store}")
	}
	return &Adapter{api: remote.API{HTTP: cfg.HTTP, RateLimiter: cfg.RateLimiter},
		base: strings.TrimRight(cfg.BaseURL, "/")}, nil
}

// Name implements provider.Adapter.
func (*Adapter) Name() string { return Name }

// VerifySignature implements provider.Adapter: signatures are in standard base64.
func (*Adapter) VerifySignature(secrets []settings.Secret, signature string, body []byte) bool {
	return provider.VerifyHMAC(provider.Base64Signature, secrets, signature, body)
}

// IsPing implements provider.Adapter: the unsigned form "webhook_id=n" comes when a webhook is made, and
// wants a 200.
func (*Adapter) IsPing(body []byte) bool {
	id, found := strings.CutPrefix(string(body), "webhook_id=")
	return found && payload.IsNumber(id)
}

// apiRoot returns the URL of a shop's API. The shop is the merchant's input: only a public host name with at
// most a plain directory is accepted, here and by package outbound again.
func (a *Adapter) apiRoot(s provider.Shop) (string, error) {
	if a.base != "" {
		return strings.ReplaceAll(a.base, "{store}", url.PathEscape(s.ExternalStoreID)), nil
	}
	for _, where := range []string{s.ExternalStoreID, s.Profile.Domain} {
		if site, ok := parseSite(where); ok {
			return strings.ReplaceAll(DefaultBase, "{store}", site), nil
		}
	}
	return "", &provider.RequestRejected{Reason: provider.Reason(outbound.AddressForbidden)}
}

// parseSite reads "shop.example.org", "https://shop.example.org/" or "https://example.org/shop".
func parseSite(text string) (string, bool) {
	text = strings.ToLower(strings.TrimSpace(text))
	text = strings.TrimRight(strings.TrimPrefix(text, "https://"), "/")
	host, directory, nested := strings.Cut(text, "/")
	const plain = "abcdefghijklmnopqrstuvwxyz0123456789-_/"
	if !outbound.PublicName(host) || nested &&
		(strings.Trim(directory, plain) != "" || strings.Contains(text, "//")) {
		return "", false
	}
	return text, true
}

// call makes one call for a shop.
func (a *Adapter) call(
	ctx context.Context, s provider.Shop, request remote.Request,
) (*outbound.Response, error) {
	root, err := a.apiRoot(s)
	if err != nil {
		return nil, err
	}
	key, secret, ok := strings.Cut(s.Credential.Reveal(), ":")
	if !ok || key == "" || secret == "" {
		return nil, &provider.CredentialRefused{}
	}
	r, err := request.At(root)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(key+":"+secret)))
	response, err := a.api.Do(ctx, s, 1, r, request.Read)
	return response, trustShopErrors(response, err)
}

// trustShopErrors turns refusals and "not found" into a temporary error unless they have the shop's own error
// code: a 403 of a firewall must not revoke a credential, and a 404 of a site whose routes are disabled must
// not delete an entity.
func trustShopErrors(a *outbound.Response, err error) error {
	var refused *provider.CredentialRefused
	if !errors.Is(err, provider.ErrNotFound) && !errors.As(err, &refused) || a == nil {
		return err
	}
	code := errorCode(a)
	if code == "" || errors.Is(err, provider.ErrNotFound) && !strings.HasPrefix(code, "woocommerce_rest_") {
		return &provider.Temporary{Reason: provider.ReasonContentType, Status: a.Status}
	}
	return err
}

// errorCode returns the code of the shop's own error, "" when there is none.
func errorCode(a *outbound.Response) string {
	var e struct {
		Code payload.Text `json:"code"`
	}
	if a == nil || !remote.IsJSON(a) || payload.Decode(a.Body, &e) != nil {
		return ""
	}
	return string(e.Code)
}

// Profile implements provider.Adapter.
func (a *Adapter) Profile(ctx context.Context, s provider.Shop) (provider.Profile, error) {
	var status struct {
		Environment struct {
			SiteURL  payload.Text `json:"site_url"`
			Language payload.Text `json:"language"`
		} `json:"environment"`
		Settings struct {
			Currency payload.Text `json:"currency"`
		} `json:"settings"`
	}
	_, err := a.call(ctx, s, remote.Request{Method: http.MethodGet, Path: "/system_status",
		Query:   url.Values{"_fields": {"environment,settings"}},
		MaxBody: outbound.MaxSmall, Read: remote.Into(&status)})
	if err != nil {
		return provider.Profile{}, err
	}
	p := provider.Profile{Currency: string(status.Settings.Currency), Domain: s.Profile.Domain}
	if status.Environment.Language != "" {
		p.Language = payload.Language(string(status.Environment.Language))
	}
	if site, ok := parseSite(string(status.Environment.SiteURL)); ok {
		p.Domain = site
	}
	return p, nil
}

func listPath(e catalog.Entity) string {
	switch e {
	case catalog.Product:
		return "/products"
	case catalog.Category:
		return "/products/categories"
	default:
		return "/orders"
	}
}
