// Package stack starts and controls deployments of Storefront: the services as real binaries, the demo
// engine, the fake provider and stores of their own, each a process that can be started, stopped, killed,
// paused and configured, with links between them that can fail. The local stack, the system tests, the fault
// campaign, the benchmarks and the observability check use it. It knows of a service only its configuration,
// its operations port and the signals that a process takes.
package stack

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	"storefront.internal/deploy/stack/client"
)

// Settings are what the services of one deployment share.
type Settings struct {
	Bin          string // folder of the binaries
	Database     string // URL of the deployment's database, as superuser
	RolePassword string // of the login roles; "" where the server trusts the loopback interface
	RedisAddr    string
	KafkaBrokers string
	ErrorsBase   string // ends with "/"

	DecisionKeys   string // "kid:base64"
	KeysetFile     string // made by `control keyset new`
	ConnectorToken string
	BackendToken   string
	EngineToken    string // of the engine as a caller of the internal surface; "": the engine cannot call it
	Pepper         string // of custom connectors' tokens

	EngineURL    string // "": no engine is configured
	EngineSecret string // the bearer token that the engine expects

	// of the fake provider, which also receives webhooks; "": no app is configured and nothing can be
	// installed
	ProviderURL string
	AppID       string // of our app at the provider
	AppSecret   string // signs the provider's webhooks

	ControlMore []string // further variables of control
}

// bases are the paths of the fake provider's APIs by provider.
func bases() map[string]string {
	return map[string]string{
		client.ConnectorProvider: "/tiendanube/2025-03/{store}", "shopify": "/shopify/{store}",
		"woocommerce": "/woocommerce/{store}/wp-json/wc/v3",
	}
}

// ConnectorTokens are the connector principals, as CONTROL_CONNECTOR_TOKENS and FAKEPROVIDER_CONNECTOR_TOKENS
// have them.
func (s Settings) ConnectorTokens() string {
	return each(func(provider, _ string) string {
		return provider + ":" + client.ConnectorToken(s.ConnectorToken, provider)
	})
}

// each joins a text for every provider by commas.
func each(say func(provider, base string) string) string {
	var all []string
	for _, provider := range slices.Sorted(maps.Keys(bases())) {
		all = append(all, say(provider, bases()[provider]))
	}
	return strings.Join(all, ",")
}

// ratePerSecond is far above what one machine sends, so that no rate limit refuses anything.
const ratePerSecond = "100000"

// Edge is the environment of an edge that listens on the two addresses.
func (s Settings) Edge(listen, admin string) []string {
	env := []string{
		"EDGE_LISTEN=" + listen, "EDGE_ADMIN_LISTEN=" + admin, "EDGE_ERRORS_BASE=" + s.ErrorsBase,
		"EDGE_DATABASE_URL=" + s.as("edge"), "EDGE_REDIS_ADDRS=" + s.RedisAddr, "EDGE_KAFKA_BROKERS=" +
			s.KafkaBrokers,
		"EDGE_DECISION_KEYS=" + s.DecisionKeys, "EDGE_SDK=true",
		"EDGE_RATE_PER_KEY=" + ratePerSecond, "EDGE_RATE_PER_ADDRESS=" + ratePerSecond, "EDGE_RATE_BURST=" +
			ratePerSecond,
		"EDGE_AUTH_FAILURES=" + ratePerSecond, "EDGE_CLAIMS_PER_CONNECTION=0",
		"EDGE_MAX_CONNECTIONS_PER_ADDRESS=0", // all clients of a local deployment have one address
	}
	if s.EngineURL != "" {
		env = append(env, "EDGE_ENGINE_URL="+s.EngineURL, "EDGE_ENGINE_TOKEN="+s.EngineSecret)
	}
	return env
}

// Control is the environment of a control that listens on the two addresses.
func (s Settings) Control(listen, admin string) []string {
	env := []string{
		"CONTROL_LISTEN=" + listen, "CONTROL_ADMIN_LISTEN=" + admin, "CONTROL_ERRORS_BASE=" + s.ErrorsBase,
		"CONTROL_DATABASE_URL=" + s.as("control"), "CONTROL_REDIS_ADDRS=" + s.RedisAddr,
		"CONTROL_KEYSET_FILE=" + s.KeysetFile,
		"CONTROL_CONNECTOR_TOKENS=" + s.ConnectorTokens(), "CONTROL_BACKEND_TOKENS=" + s.BackendToken,
		"CONTROL_ENGINE_TOKENS=" + s.EngineToken, "CONTROL_CONNECTOR_PEPPER=" + s.Pepper,
	}
	if s.ProviderURL != "" {
		env = append(env,
			"CONTROL_APP_SECRETS="+
				each(func(provider, _ string) string { return provider + "/" + s.AppID + ":" + s.AppSecret }),
			"CONTROL_PROVIDER_URLS="+
				each(func(provider, base string) string { return provider + "=" + s.ProviderURL + base }),
			"CONTROL_WEBHOOK_URL="+s.ProviderURL+"/hooks",
			"CONTROL_PROVIDER_NETWORKS=127.0.0.0/8", "CONTROL_PRODUCTION=false")
	}
	return append(env, s.ControlMore...)
}

// Migrate is the environment of `control migrate up`, which owns the schema.
func (s Settings) Migrate() []string {
	return append(s.Control("", ""), "CONTROL_DATABASE_URL="+s.Database)
}

// Relay is the environment of a relay whose operations port is at admin.
func (s Settings) Relay(admin string) []string {
	env := []string{
		"RELAY_ADMIN_LISTEN=" + admin, "RELAY_DATABASE_URL=" + s.as("relay"), "RELAY_KAFKA_BROKERS=" +
			s.KafkaBrokers,
	}
	if s.EngineURL != "" {
		env = append(env, "RELAY_ENGINE_URL="+s.EngineURL, "RELAY_ENGINE_TOKEN="+s.EngineSecret)
	}
	return env
}

// as is the database's URL for a login role.
func (s Settings) as(role string) string {
	u, err := url.Parse(s.Database)
	if err != nil {
		return s.Database // the service reports what is wrong with it
	}
	u.User = url.User(role)
	if s.RolePassword != "" {
		u.User = url.UserPassword(role, s.RolePassword)
	}
	return u.String()
}
