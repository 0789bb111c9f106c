package httpapi

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"storefront.internal/control/internal/connection"
	"storefront.internal/control/internal/principal"
	"storefront.internal/control/internal/storekeys"
	"storefront.internal/shared/deliveries"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/problem"
	"storefront.internal/shared/storekey"
)

// The canaries: none of them may show up in a log line, a metric or a problem.
const (
	connectorToken = "canary-connector-token-0123456789abcdef"
	backendToken   = "canary-backend-token-0123456789abcdefgh"
	engineToken    = "canary-engine-token-0123456789abcdefghi"
	foreignToken   = "canary-foreign-token-0123456789abcdefgh"
	canarySecret   = "spk_canarySECRETcanarySECRETcanary012345"
	canaryText     = "canary-body-text"
)

const (
	oneConnection = "con_1"
	noConnection  = "con_none"
)

func at() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.FixedZone("x", 3600)) }

// fake is every use case; fail is what each of them returns when it is set.
type fake struct {
	fail     error
	off      bool
	scopes   []string
	external string
	profile  *connection.Profile
	dead     deliveries.DeadQuery
	replay   deliveries.ReplayQuery
	view     deliveries.View
}

func (f *fake) of(c ident.ConnectionID) error {
	if c == noConnection {
		return fault.New(fault.NotFound, "There is no such connection.")
	}
	return f.fail
}

func (f *fake) Issue(_ context.Context, c ident.ConnectionID, scopes []string) (storekeys.Key, error) {
	f.scopes = scopes
	for _, s := range scopes {
		if _, ok := storekey.ParseScope(s); !ok {
			return storekeys.Key{}, fault.New(fault.UnknownScope, "")
		}
	}
	return storekeys.Key{ID: "key_1", ConnectionID: c, Scopes: storekey.AllScopes(), CreatedAt: at(), Secret: canarySecret}, f.of(c)
}

func (f *fake) List(_ context.Context, c ident.ConnectionID) ([]storekeys.Key, error) {
	return []storekeys.Key{
		{ID: "key_2", ConnectionID: c, Scopes: storekey.AllScopes(), CreatedAt: at(), Secret: canarySecret},
		{ID: "key_1", ConnectionID: c, Scopes: []storekey.Scope{storekey.SignalsWrite}, CreatedAt: at()},
	}, f.of(c)
}

func (f *fake) Revoke(_ context.Context, c ident.ConnectionID, _ ident.KeyID) error { return f.of(c) }

func (f *fake) Enabled() error {
	if f.off {
		return fault.New(fault.PrincipalOff, "")
	}
	return nil
}

func (f *fake) Create(_ context.Context, external string, p *connection.Profile) (connection.Created, error) {
	f.external, f.profile = external, p
	return connection.Created{ConnectionID: "con_2", StoreID: "str_2", Token: "sct_" + strings.Repeat("x", 43)}, f.fail
}

func (f *fake) Rotate(_ context.Context, c ident.ConnectionID) (string, error) {
	if err := f.Enabled(); err != nil {
		return "", err
	}
	return "sct_" + strings.Repeat("y", 43), f.of(c)
}

func (f *fake) View(context.Context) (deliveries.View, error) { return f.view, f.fail }

func (f *fake) Resume(context.Context) error { return f.fail }

func (f *fake) Dead(_ context.Context, q deliveries.DeadQuery) (deliveries.DeadPage, error) {
	f.dead = q
	return deliveries.DeadPage{Cursor: "next", Dead: []deliveries.DeadEntry{
		{SignalID: "sig_1", ConnectionID: oneConnection, DiedAt: at(), Attempts: 8, Reason: "rejected"},
	}}, f.fail
}

func (f *fake) Replay(_ context.Context, q deliveries.ReplayQuery) (int, error) {
	f.replay = q
	return 3, f.fail
}

// bundle is an API over the fake, its log and its metrics.
type bundle struct {
	api      *API
	fake     *fake
	log      *syncBuffer
	registry *prometheus.Registry
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func newBundle(t *testing.T, tokens principal.Tokens) *bundle {
	t.Helper()
	ring, err := principal.Parse(tokens)
	if err != nil {
		t.Fatal(err)
	}
	f, log, registry := &fake{}, &syncBuffer{}, prometheus.NewRegistry()
	f.view = deliveries.View{ReadAt: at(), Worker: deliveries.Worker{State: deliveries.Running}}
	return &bundle{fake: f, log: log, registry: registry, api: New(Config{
		Principals: ring, Keys: f, Connections: f, Queue: f, Problems: problem.New("https://errors.test/"),
		Metrics: NewMetrics(registry), Now: time.Now,
		Logger: slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})), // without redaction
	})}
}

func allTokens() principal.Tokens {
	return principal.Tokens{Connectors: "shopify:" + connectorToken, Backend: backendToken, Engine: engineToken}
}

// call makes one request and returns the answer.
func (b *bundle) call(method, target, token string, body io.Reader, change ...func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, body)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for _, c := range change {
		c(r)
	}
	w := httptest.NewRecorder()
	b.api.ServeHTTP(w, r)
	return w
}
