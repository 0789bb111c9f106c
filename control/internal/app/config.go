package app

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"storefront.internal/control/internal/principal"
	"storefront.internal/control/internal/seal"
	"storefront.internal/control/internal/stats"
	"storefront.internal/control/internal/webhook"
	"storefront.internal/shared/settings"
)

// Prefix starts every variable of control.
const Prefix = "CONTROL"

// Config is control's configuration; CONFIG.md is made from its tags.
type Config struct {
	settings.Postgres
	settings.Redis
	settings.Telemetry
	settings.ServerTLS
	Providers
	Workers
	Listen          string          `envconfig:"LISTEN" default:":8081" desc:"address of the internal surface"`
	ErrorsBase      string          `envconfig:"ERRORS_BASE" required:"true" desc:"prefix of a problem's type: a URL that ends with /"`
	Keyset          settings.Secret `envconfig:"KEYSET" desc:"Tink keyset in JSON that seals secrets at rest, made by control keyset new; this or the file is required. To rotate: control keyset add, then promote, then retire when storefront_control_sealed_secrets shows none under an older key; every process must have each keyset before the next step"`
	KeysetFile      string          `envconfig:"KEYSET_FILE" desc:"path of a file with the keyset"`
	ConnectorTokens settings.Secret `envconfig:"CONNECTOR_TOKENS" required:"true" desc:"connector principals, provider:token[|next token], separated by commas; each token at least 32 characters"`
	BackendTokens   settings.Secret `envconfig:"BACKEND_TOKENS" desc:"backend principal, token[|next token]; empty: its routes are not mounted"`
	EngineTokens    settings.Secret `envconfig:"ENGINE_TOKENS" desc:"engine principal, token[|next token]; empty: its routes are not mounted"`
	ConnectorPepper settings.Secret `envconfig:"CONNECTOR_PEPPER" desc:"pepper of custom connectors' tokens, at least 32 characters; empty: custom connectors are off"`
	BodyBudget      int64           `envconfig:"BODY_BUDGET" default:"134217728" desc:"bytes of request bodies of deliver_observations that the process buffers at a time, at least 33554432 (one body); a request that exceeds it gets a 503, and so does one of a connection that holds a quarter of it. Work on bodies may take as many bytes again, by the size of what is parsed, and waits beyond that"`
	WebhookBudget   int64           `envconfig:"WEBHOOK_BODY_BUDGET" default:"33554432" desc:"bytes of request bodies of deliver_webhook that the process buffers at a time, at least 5242880 (one body); a request that exceeds it gets a 503"`
	Retention
}

// minBodyBudget is the smallest budget of the bodies of deliver_observations.
const minBodyBudget = 32 << 20

// lateCatchUps is after how many intervals without a catch-up a shop counts as late: one passes while a
// reload takes its turn, and another one until a failed catch-up has been repeated.
const lateCatchUps = 4

func (c *Config) limits() stats.Limits {
	return stats.Limits{Silent: c.SilentAfter, Late: lateCatchUps * c.CatchUpEvery}
}

// minPepper is the shortest pepper, in bytes.
const minPepper = 32

// Validate implements the check that settings.Load calls. No error quotes a value.
func (c *Config) Validate() []error {
	faults := settings.Listen("LISTEN", c.Listen)
	if u, err := url.Parse(c.ErrorsBase); err != nil || u.Scheme == "" || u.Host == "" ||
		!strings.HasSuffix(c.ErrorsBase, "/") {
		faults = append(faults, settings.Errorf("ERRORS_BASE", "must be an absolute URL that ends with /"))
	}
	if (c.Keyset == "") == (c.KeysetFile == "") {
		faults = append(faults, settings.Errorf("KEYSET", "set either this or %s_KEYSET_FILE", Prefix))
	} else if _, err := c.sealer(); err != nil {
		faults = append(faults, settings.Errorf("KEYSET", "%v", err))
	}
	if _, err := c.principals(); err != nil {
		faults = append(faults, settings.Errorf("CONNECTOR_TOKENS",
			"(with %[1]s_BACKEND_TOKENS, %[1]s_ENGINE_TOKENS) %[2]v", Prefix, err))
	}
	if n := len(c.ConnectorPepper); n > 0 && n < minPepper {
		faults = append(faults, settings.Errorf("CONNECTOR_PEPPER",
			"must be empty or at least %d characters", minPepper))
	}
	if c.BodyBudget < minBodyBudget {
		faults = append(faults, settings.Errorf("BODY_BUDGET", "must be at least %d", minBodyBudget))
	}
	if c.WebhookBudget < webhook.MaxBody {
		faults = append(faults, settings.Errorf("WEBHOOK_BODY_BUDGET", "must be at least %d",
			webhook.MaxBody))
	}
	return faults
}

func (c *Config) principals() (*principal.Keyring, error) {
	return principal.Parse(principal.Tokens{
		Connectors: c.ConnectorTokens.Reveal(), Backend: c.BackendTokens.Reveal(),
		Engine: c.EngineTokens.Reveal(),
	})
}

func (c *Config) sealer() (*seal.Sealer, error) {
	keyset := []byte(c.Keyset.Reveal())
	if c.KeysetFile != "" {
		var err error
		if keyset, err = os.ReadFile(c.KeysetFile); err != nil {
			return nil, errors.New("the keyset file cannot be read")
		}
	}
	return seal.Parse(keyset)
}

// MigrateConfig is what `control migrate` reads. Its URL is of the role that owns the schemas.
type MigrateConfig struct {
	DatabaseURL settings.Secret `envconfig:"DATABASE_URL" required:"true"`
}

// loadMigrate reads its one variable and ignores those of the service.
func loadMigrate(environ []string) (cfg MigrateConfig, err error) {
	var own []string
	for _, pair := range environ {
		if strings.HasPrefix(pair, Prefix+"_DATABASE_URL=") {
			own = append(own, pair)
		}
	}
	if err := settings.Load(Prefix, &cfg, own); err != nil {
		return cfg, fmt.Errorf("migrate: %w", err)
	}
	return cfg, nil
}
