package httpapi

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"storefront.internal/control/internal/connection"
	"storefront.internal/control/internal/installation"
	"storefront.internal/control/internal/observation"
	"storefront.internal/control/internal/parked"
	"storefront.internal/control/internal/principal"
	"storefront.internal/control/internal/storekeys"
	"storefront.internal/control/internal/webhook"
	"storefront.internal/shared/catalog"
	"storefront.internal/shared/deliveries"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/problem"
	"storefront.internal/shared/storekey"
	"storefront.internal/shared/testkit"
)

// The canaries: none of them may appear in a log line, a metric or a problem.
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

// fake implements every use case; fail is the error of each of them, when set.
type fake struct {
	fail     error
	off      bool
	scopes   []string
	external string
	profile  *connection.Profile
	dead     deliveries.DeadQuery
	replay   deliveries.ReplayQuery
	parked   parked.Query

	dropReason string
	view       deliveries.View

	caller    string
	webhook   *webhook.Request
	received  string // the body of webhook, which is the API's
	install   installation.Request
	installed installation.Installed
	listed    installation.Query
	status    *installation.Status
	disabled  *installation.Disabled
	refusedAt *time.Time

	identify  error
	source    observation.Source
	delivered string
	results   []observation.Result
	snapshot  observation.Snapshot
	raw       string
	cursor    string
	visitor   ident.VisitorID
}

// fakeQueue has its own Replay.
type fakeQueue struct{ *fake }

func (f fakeQueue) Replay(_ context.Context, q deliveries.ReplayQuery) (int, error) {
	f.replay = q
	return 3, f.fail
}

// snapshotOf is what read_canonical reads of an entity.
func snapshotOf(e catalog.Entity, document string) observation.Snapshot {
	s := observation.Snapshot{
		ObservationID: "obs_1", Provider: "custom", ExternalStoreID: "store", Entity: e,
		ExternalID: "x<1>", Revision: 7,
		Operation: catalog.Upsert, ContentDigest: catalog.Digest([]byte(document)),
		Document: []byte(document),
	}
	if document == "" {
		s.Operation, s.Document = catalog.Delete, nil
	}
	return s
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
	return storekeys.Key{ID: "key_1", ConnectionID: c, Scopes: storekey.AllScopes(), CreatedAt: at(),
		Secret: canarySecret}, f.of(c)
}

func (f *fake) List(_ context.Context, c ident.ConnectionID) ([]storekeys.Key, error) {
	return []storekeys.Key{
		{ID: "key_2", ConnectionID: c, Scopes: storekey.AllScopes(), CreatedAt: at(), Secret: canarySecret},
		{ID: "key_1", ConnectionID: c, Scopes: []storekey.Scope{storekey.SignalsWrite}, CreatedAt: at()},
	}, f.of(c)
}

func (f *fake) Revoke(_ context.Context, c ident.ConnectionID, _ ident.KeyID) error { return f.of(c) }

func (f *fake) EraseVisitor(_ context.Context, c ident.ConnectionID, v ident.VisitorID) error {
	f.visitor = v
	return f.of(c)
}

func (f *fake) Enabled() error {
	if f.off {
		return fault.New(fault.PrincipalOff, "")
	}
	return nil
}

func (f *fake) Create(_ context.Context, external string, p *connection.Profile) (connection.Created, error) {
	f.external, f.profile = external, p
	return connection.Created{ConnectionID: "con_2", StoreID: "str_2", Token: "sct_" +
		strings.Repeat("x", 43)}, f.fail
}

func (f *fake) Rotate(_ context.Context, c ident.ConnectionID) (string, error) {
	if err := f.Enabled(); err != nil {
		return "", err
	}
	return "sct_" + strings.Repeat("y", 43), f.of(c)
}

// holderToken is of con_1.
const holderToken = "sct_canary-holder-token"

func (f *fake) Identify(_ context.Context, c ident.ConnectionID, token string) (connection.Custom, error) {
	if f.identify != nil {
		return connection.Custom{}, f.identify
	}
	if token != holderToken || c != oneConnection {
		return connection.Custom{}, fault.New(fault.Unauthorized, "")
	}
	return connection.Custom{ID: c, StoreID: "str_1"}, nil
}

func (f *fake) Deliver(_ context.Context, from observation.Source,
	body []byte) ([]observation.Result, error) {
	f.source, f.delivered = from, string(body)
	if _, err := catalog.Split(body); err != nil {
		return nil, err
	}
	return f.results, f.fail
}

func (f *fake) Snapshot(_ context.Context, id ident.ObservationID) (observation.Snapshot, error) {
	if id == "obs_none" {
		return observation.Snapshot{}, fault.New(fault.NotFound, "")
	}
	return f.snapshot, f.fail
}

func (f *fake) Raw(_ context.Context, id ident.ObservationID) ([]byte, error) {
	if id == "obs_none" {
		return nil, fault.New(fault.NotFound, "")
	}
	return []byte(f.raw), f.fail
}

func (f *fake) Quarantine(_ context.Context, c ident.ConnectionID, cursor string) (observation.Page, error) {
	f.cursor = cursor
	if cursor == "bad" {
		return observation.Page{}, fault.New(fault.InvalidRequest, "")
	}
	return observation.Page{Cursor: "obs_1", Observations: []observation.QuarantinedObservation{
		{ObservationID: "obs_1", Entity: catalog.Product, ExternalID: "p/1", Revision: 3,
			Reason: "missing at /document/item", At: at()},
	}}, f.of(c)
}

func (f *fake) Replay(_ context.Context, c ident.ConnectionID,
	id ident.ObservationID) (observation.Result, error) {
	return observation.Result{Status: observation.Quarantined, ObservationID: id, EntityID: "itm_1",
		Reason: "missing at /document/item"}, f.of(c)
}

func (f *fake) View(context.Context) (deliveries.View, error) { return f.view, f.fail }

func (f *fake) Resume(context.Context) error { return f.fail }

func (f *fake) Dead(_ context.Context, q deliveries.DeadQuery) (deliveries.DeadPage, error) {
	f.dead = q
	return deliveries.DeadPage{Cursor: "next", Dead: []deliveries.DeadLetter{
		{ID: "sig_1", ConnectionID: oneConnection, DiedAt: at(), Attempts: 8, Reason: "rejected"},
	}}, f.fail
}

// bundle is an API over the fake, its log and its metrics.
type bundle struct {
	api      *API
	fake     *fake
	log      *testkit.Log
	registry *prometheus.Registry
}

func newBundle(t *testing.T, tokens principal.Tokens) *bundle {
	t.Helper()
	ring, err := principal.Parse(tokens)
	if err != nil {
		t.Fatal(err)
	}
	f, log, registry := &fake{}, &testkit.Log{}, prometheus.NewRegistry()
	f.raw, f.snapshot = `{"id": 1 }`, snapshotOf(catalog.Product, "")
	f.results = []observation.Result{{Status: observation.Accepted, ObservationID: "obs_1",
		EntityID: "itm_1"}}
	f.view = deliveries.View{ReadAt: at(), Worker: deliveries.Worker{State: deliveries.Running}}
	return &bundle{fake: f, log: log, registry: registry, api: New(Config{
		Principals: ring, Keys: f, Connections: f, Installations: fakeInstallations{f},
		Bootstraps: fakeLoads{f}, Webhooks: f, Observations: f, Erasures: f, Queue: fakeQueue{f},
		Parked:     fakeParked{f},
		BodyBudget: 64 << 20, WebhookBudget: 10 << 20, Problems: problem.New("https://errors.test/"),
		Metrics: NewMetrics(registry), Now: time.Now,
		// without redaction
		Logger: slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})}
}

func allTokens() principal.Tokens {
	return principal.Tokens{Connectors: "shopify:" + connectorToken, Backend: backendToken,
		Engine: engineToken}
}

// call makes one request and returns the answer.
func (b *bundle) call(method, target, token string, body io.Reader,
	change ...func(*http.Request)) *httptest.ResponseRecorder {
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
