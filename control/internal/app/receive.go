package app

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"storefront.internal/control/internal/principal"
	"storefront.internal/control/internal/receiver"
	"storefront.internal/shared/service"
	"storefront.internal/shared/settings"
	"storefront.internal/shared/telemetry"
)

// ReceiverPrefix starts every variable of `control receive`.
const ReceiverPrefix = "RECEIVER"

// ReceiverConfig is the configuration of `control receive`. It has no store and none of control's secrets but
// the connectors' tokens.
type ReceiverConfig struct {
	settings.ServerTLS
	settings.Operations
	Listen          string          `envconfig:"LISTEN" default:":8082" desc:"address of the public surface that providers deliver to"`
	Path            string          `envconfig:"PATH" desc:"path in front of /{provider}/{endpoint_id}, that of CONTROL_WEBHOOK_URL; empty: none"`
	ControlURL      string          `envconfig:"CONTROL_URL" required:"true" desc:"base URL of control"`
	ConnectorTokens settings.Secret `envconfig:"CONNECTOR_TOKENS" required:"true" desc:"connector principals as in CONTROL_CONNECTOR_TOKENS; those of shopify, tiendanube and woocommerce are used, and of two values the first"`
	Timeout         time.Duration   `envconfig:"TIMEOUT" default:"10s" desc:"longest wait for control before the provider is answered 503"`
	BodyBudget      int64           `envconfig:"BODY_BUDGET" default:"67108864" desc:"bytes of request bodies that the process holds at a time, at least 5242880 (one body; a chunked one counts as that); a request that exceeds it gets a 503"`
	MaxConnections  int             `envconfig:"MAX_CONNECTIONS" default:"1024" desc:"connections that may be open; more wait until one ends"`
}

// Validate implements the check that settings.Load calls. No error quotes a token.
func (c *ReceiverConfig) Validate() []error {
	errs := settings.Listen("LISTEN", c.Listen)
	if c.Path != "" && (!strings.HasPrefix(c.Path, "/") || strings.HasSuffix(c.Path, "/")) {
		errs = append(errs, settings.Errorf("PATH", "must begin with a slash and not end with one"))
	}
	u, err := url.Parse(c.ControlURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil ||
		u.RawQuery != "" {
		errs = append(errs, settings.Errorf("CONTROL_URL",
			"must be an absolute http or https URL without credentials and query"))
	}
	tokens, err := principal.ConnectorTokens(c.ConnectorTokens.Reveal())
	if err != nil {
		errs = append(errs, settings.Errorf("CONNECTOR_TOKENS", "%v", err))
	}
	if err == nil && len(receivable(tokens)) == 0 {
		errs = append(errs, settings.Errorf("CONNECTOR_TOKENS",
			"has no token of shopify, tiendanube or woocommerce, which are the providers that send webhooks"))
	}
	if c.Timeout <= 0 || c.Timeout > time.Minute {
		errs = append(errs, settings.Errorf("TIMEOUT", "must be more than 0 and at most 1m"))
	}
	if c.BodyBudget < receiver.MaxBody {
		errs = append(errs, settings.Errorf("BODY_BUDGET", "must be at least %d", receiver.MaxBody))
	}
	if c.MaxConnections < 1 || c.MaxConnections > 1_000_000 {
		errs = append(errs, settings.Errorf("MAX_CONNECTIONS", "must be 1 to 1000000"))
	}
	return errs
}

// receivable leaves out the providers that send no webhooks, since control's setting may name others, too.
func receivable(tokens map[string]settings.Secret) map[string]settings.Secret {
	maps.DeleteFunc(tokens, func(provider string, _ settings.Secret) bool {
		return !receiver.Translates(provider)
	})
	return tokens
}

// ReceiverApp is a receiver that is wired and does not run yet.
type ReceiverApp struct {
	logger *slog.Logger
	admin  *telemetry.Admin
	server *listener
}

// NewReceiver wires a receiver. It opens no port before Run.
func NewReceiver(cfg ReceiverConfig, logger *slog.Logger) (*ReceiverApp, error) {
	tokens, err := principal.ConnectorTokens(cfg.ConnectorTokens.Reveal())
	if err != nil {
		return nil, err
	}
	control, err := url.Parse(cfg.ControlURL)
	if err != nil {
		return nil, err
	}
	registry := telemetry.NewRegistry("receiver")
	certificate, err := loadCertificate(ReceiverPrefix, cfg.ServerTLS, registry, logger)
	if err != nil {
		return nil, err
	}
	handler := receiver.New(receiver.Config{Control: control, Tokens: receivable(tokens), Path: cfg.Path,
		BodyBudget: cfg.BodyBudget, Transport: receiverTransport(), Timeout: cfg.Timeout, Logger: logger,
		Metrics: receiver.NewMetrics(registry)})
	handler.Watch(registry)
	a := &ReceiverApp{logger: logger, server: newListener(cfg.Listen, certificate, &http.Server{
		Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 20 * time.Second,
		WriteTimeout: 20*time.Second + cfg.Timeout, IdleTimeout: 30 * time.Second, MaxHeaderBytes: 16 << 10,
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
	})}
	a.server.limit = cfg.MaxConnections
	a.admin = telemetry.NewAdmin(telemetry.AdminConfig{Listen: cfg.AdminListen, Gatherer: registry,
		Logger: logger, Service: "receiver", Pprof: cfg.AdminPprof})
	return a, nil
}

// receiverTransport keeps connections to control. It uses no proxy: control is in the same network.
func receiverTransport() *http.Transport {
	dialer := &net.Dialer{Timeout: 3 * time.Second}
	return &http.Transport{DialContext: dialer.DialContext, TLSHandshakeTimeout: 3 * time.Second,
		MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute, DisableCompression: true}
}

// Run serves until a signal or the end of the context. Running requests end before it returns. A receiver is
// ready whether control answers or not.
func (a *ReceiverApp) Run(ctx context.Context) error {
	g := service.New(service.Config{Logger: a.logger})
	g.Add("operations port", a.admin.Start, a.admin.Stop)
	g.Add("public surface", func(ctx context.Context) error { return a.server.start(ctx, g.Fail) },
		a.server.stop)
	g.Add("drain", nil, func(context.Context) error {
		a.admin.SetDraining()
		return nil
	})
	return g.Run(ctx)
}

// Addr is the bound address of the public surface, empty before it listens.
func (a *ReceiverApp) Addr() string { return a.server.bound() }

// AdminAddr is the bound address of the operations port.
func (a *ReceiverApp) AdminAddr() string { return a.admin.Addr() }

func receive(ctx context.Context, environ []string, logs io.Writer) error {
	var cfg ReceiverConfig
	if err := settings.Load(ReceiverPrefix, &cfg, environ); err != nil {
		return err
	}
	log := telemetry.NewLogger(logs, cfg.LogLevel, "receiver")
	if limit := service.ApplyMemoryHeadroom(); limit > 0 {
		log.Info("memory limit", "bytes", limit)
	}
	a, err := NewReceiver(cfg, log)
	if err != nil {
		return err
	}
	return a.Run(ctx)
}
