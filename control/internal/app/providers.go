package app

import (
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"storefront.internal/control/internal/appsecret"
	"storefront.internal/control/internal/outbound"
	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/provider/shopify"
	"storefront.internal/control/internal/provider/tiendanube"
	"storefront.internal/control/internal/provider/woocommerce"
	"storefront.internal/shared/settings"
)

// Providers is the configuration of platform connectors.
type Providers struct {
	AppSecrets        settings.Secret `envconfig:"APP_SECRETS" desc:"secrets of our apps at providers, provider/app_id:secret[|next secret], separated by commas; without one, an app cannot install"`
	WeakAppSecrets    bool            `envconfig:"APP_SECRETS_INSECURE" default:"false" desc:"accept secrets in CONTROL_APP_SECRETS that can be guessed: shorter than 24 characters, or with fewer than 8 different ones"`
	WebhookURL        string          `envconfig:"WEBHOOK_URL" desc:"where providers send webhooks: an https URL to which /{provider}/{endpoint_id} is added; required with CONTROL_APP_SECRETS"`
	WebhookDeliveries int             `envconfig:"WEBHOOK_DELIVERIES_PER_MINUTE" default:"6000" desc:"webhooks that an endpoint may deliver to a process in a minute; more get a 429 with Retry-After, which every provider repeats"`
	WebhookBytes      int             `envconfig:"WEBHOOK_BYTES_PER_MINUTE" default:"33554432" desc:"bytes of webhooks that an endpoint may deliver to a process in a minute"`
	TiendanubeAgent   string          `envconfig:"TIENDANUBE_USER_AGENT" default:"Storefront" desc:"User-Agent for Tiendanube, which requires the app's name and a contact"`
	TiendanubeBearer  bool            `envconfig:"TIENDANUBE_BEARER" default:"false" desc:"send the credential to Tiendanube as Authorization: Bearer"`
	CatchUpEvery      time.Duration   `envconfig:"CATCH_UP_EVERY" default:"10m" desc:"time between two catch-ups of a shop, which read updates whose webhooks were lost; each shop has its own place within it, so the catch-ups of all are spread over it; 1s to 24h"`
	ReloadEvery       time.Duration   `envconfig:"RELOAD_EVERY" default:"24h" desc:"greatest age of a shop's last bootstrap run before the next, which finds deletions whose webhooks were lost; of some shops up to a fifth less, so that the runs of many shops spread; 1m to 720h"`
	SilentAfter       time.Duration   `envconfig:"SILENT_AFTER" default:"24h" desc:"time without a webhook after which storefront_control_silent_shops counts a shop; 1m to 720h"`
	ProviderURLs      []string        `envconfig:"PROVIDER_URLS" desc:"for the local stack and tests: provider=base URL with {store}, separated by commas"`
	ProviderNetworks  []string        `envconfig:"PROVIDER_NETWORKS" desc:"for the local stack and tests: networks (CIDR) that may be called in plain http and by address; an error unless CONTROL_PRODUCTION is false"`
	ResponseBudget    int64           `envconfig:"PROVIDER_RESPONSE_BUDGET" default:"0" desc:"bytes of responses of providers that the process reads and decodes at a time, at least 67108864; a response that does not fit waits. 0: a tenth of GOMEMLIMIT, at least 67108864"`
	Production        bool            `envconfig:"PRODUCTION" default:"true" desc:"reject the settings of the local stack"`
}

// Validate implements the check that settings.Load calls. No error quotes a secret.
func (p *Providers) Validate() []error {
	var faults []error
	if secrets, err := p.secrets(); err != nil {
		faults = append(faults, settings.Errorf("APP_SECRETS", "%v", err))
	} else if err := secrets.CheckStrength(); err != nil && p.Production && !p.WeakAppSecrets {
		faults = append(faults, settings.Errorf("APP_SECRETS",
			"%v; %s_APP_SECRETS_INSECURE=true accepts it until they are replaced", err, Prefix))
	}
	if (p.AppSecrets != "" || p.WebhookURL != "") && !p.webhookFits() {
		faults = append(faults, settings.Errorf("WEBHOOK_URL",
			"must be an https URL without query, of a few hundred characters (http when %s_PRODUCTION is "+
				"false)", Prefix))
	}
	if p.Production && len(p.ProviderURLs)+len(p.ProviderNetworks) > 0 {
		faults = append(faults, settings.Errorf("PRODUCTION",
			"%[1]s_PROVIDER_URLS and %[1]s_PROVIDER_NETWORKS are for the local stack", Prefix))
	} else if _, err := p.registry(nil); err != nil {
		faults = append(faults, settings.Errorf("PROVIDER_URLS",
			"(with %[1]s_PROVIDER_NETWORKS, %[1]s_TIENDANUBE_USER_AGENT) %[2]v", Prefix, err))
	}
	if p.ResponseBudget != 0 && p.ResponseBudget < outbound.MinBudget {
		faults = append(faults, settings.Errorf("PROVIDER_RESPONSE_BUDGET",
			"must be 0, or at least %d", outbound.MinBudget))
	}
	if p.WebhookDeliveries < 1 {
		faults = append(faults, settings.Errorf("WEBHOOK_DELIVERIES_PER_MINUTE", "must be at least 1"))
	}
	if p.WebhookBytes < 1 {
		faults = append(faults, settings.Errorf("WEBHOOK_BYTES_PER_MINUTE", "must be at least 1"))
	}
	faults = append(faults, within("SILENT_AFTER", p.SilentAfter, time.Minute, 30*24*time.Hour)...)
	faults = append(faults, within("CATCH_UP_EVERY", p.CatchUpEvery, time.Second, 24*time.Hour)...)
	return append(faults, within("RELOAD_EVERY", p.ReloadEvery, time.Minute, 30*24*time.Hour)...)
}

func within(variable string, d, least, most time.Duration) []error {
	if d < least || d > most {
		return []error{settings.Errorf(variable, "must be %s to %s", least, most)}
	}
	return nil
}

func (p *Providers) webhookFits() bool {
	u, err := url.Parse(p.WebhookURL)
	return err == nil && u.Host != "" && u.User == nil && u.RawQuery == "" && u.Fragment == "" &&
		len(p.WebhookURL) <= 400 &&
		(u.Scheme == "https" || u.Scheme == "http" && !p.Production)
}

func (p *Providers) secrets() (*appsecret.Keyring, error) {
	return appsecret.Parse(p.AppSecrets.Reveal())
}

// bases returns the overridden base URLs by provider.
func (p *Providers) bases() (map[string]string, error) {
	out := make(map[string]string)
	for _, pair := range p.ProviderURLs {
		name, base, ok := strings.Cut(strings.TrimSpace(pair), "=")
		if name != tiendanube.Name && name != shopify.Name && name != woocommerce.Name || !ok {
			return nil, fmt.Errorf("want provider=URL with a known provider")
		}
		out[name] = base
	}
	return out, nil
}

// registry returns the registry of all adapters. The metrics may be nil.
func (p *Providers) registry(m *outbound.Metrics) (*provider.Registry, error) {
	bases, err := p.bases()
	if err != nil {
		return nil, err
	}
	var open []netip.Prefix
	for _, text := range p.ProviderNetworks {
		network, err := netip.ParsePrefix(strings.TrimSpace(text))
		if err != nil {
			return nil, fmt.Errorf("a network is not a CIDR")
		}
		open = append(open, network)
	}
	client, err := outbound.New(outbound.Config{AllowedNetworks: open, Production: p.Production,
		Budget: p.ResponseBudget, Metrics: m})
	if err != nil {
		return nil, err
	}
	nube, err := tiendanube.New(tiendanube.Config{
		HTTP: client, BaseURL: bases[tiendanube.Name], UserAgent: p.TiendanubeAgent,
		BearerHeader: p.TiendanubeBearer,
	})
	if err != nil {
		return nil, err
	}
	shop, err := shopify.New(shopify.Config{HTTP: client, BaseURL: bases[shopify.Name]})
	if err != nil {
		return nil, err
	}
	woo, err := woocommerce.New(woocommerce.Config{HTTP: client, BaseURL: bases[woocommerce.Name]})
	if err != nil {
		return nil, err
	}
	return provider.NewRegistry(nube, shop, woo)
}
