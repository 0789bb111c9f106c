package postgres_test

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"storefront.internal/control/internal/appsecret"
	"storefront.internal/control/internal/bootstrap"
	"storefront.internal/control/internal/ingest"
	"storefront.internal/control/internal/jobs"
	"storefront.internal/control/internal/observation"
	"storefront.internal/control/internal/postgres"
	"storefront.internal/control/internal/privacy"
	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/seal"
	shops "storefront.internal/control/internal/shop"
	"storefront.internal/control/internal/webhook"
	"storefront.internal/shared/catalog"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/settings"
	"storefront.internal/shared/testkit"
)

// scripted is a provider whose truth is a map, and whose calls a test may delay or fail.
type scripted struct {
	mu      sync.Mutex
	truth   map[string]string // external id → title
	fetches map[string]int
	pages   int
	fail    func(call string) error // nil error: go on
	during  func(call string)       // while a call is under way, after the truth was read
	profile error
	size    int // of pages
}

func newScripted() *scripted {
	return &scripted{truth: map[string]string{}, fetches: map[string]int{}, size: 10}
}

func (s *scripted) set(id, title string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if title == "" {
		delete(s.truth, id)
	} else {
		s.truth[id] = title
	}
}

func (s *scripted) called(id string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fetches[id]
}

func (s *scripted) around(call string) error {
	s.mu.Lock()
	fail, during := s.fail, s.during
	s.mu.Unlock()
	if fail != nil {
		if err := fail(call); err != nil {
			return err
		}
	}
	if during != nil {
		during(call)
	}
	return nil
}

func (*scripted) Name() string { return "tiendanube" }

func (*scripted) VerifySignature(secrets []settings.Secret, signature string, body []byte) bool {
	return provider.VerifyHMAC(provider.HexSignature, secrets, signature, body)
}

func (*scripted) IsPing(body []byte) bool { return string(body) == "webhook_id=7" }

func (*scripted) ParseWebhook(_ string, body []byte) (provider.WebhookEvent, error) {
	var t struct {
		Store, Event, ID string
		Entity           catalog.Entity
		Orders           []string
		Customer         provider.Customer
	}
	if err := json.Unmarshal(body, &t); err != nil {
		return provider.WebhookEvent{}, &provider.Malformed{Reason: "body"}
	}
	return provider.WebhookEvent{Kind: provider.EventKind(t.Event), Entity: cmp.Or(t.Entity, catalog.Product),
		ExternalID: t.ID, ExternalStoreID: t.Store,
		Orders: t.Orders, Customer: t.Customer}, nil
}

func (s *scripted) Fetch(_ context.Context, _ provider.Shop, _ catalog.Entity,
	id string) (provider.Fetched, error) {
	s.mu.Lock()
	title, there := s.truth[id]
	s.fetches[id]++
	s.mu.Unlock()
	if err := s.around("fetch " + id); err != nil {
		return provider.Fetched{}, err
	}
	if !there {
		return gone(id), nil
	}
	return theProduct(id, title), nil
}

func (s *scripted) Page(_ context.Context, _ provider.Shop, e catalog.Entity, _ time.Time,
	c provider.Cursor) (provider.Page, error) {
	var page provider.Page
	s.mu.Lock()
	s.pages++
	var ids []string
	for id := range s.truth {
		if e == catalog.Product && id > string(c) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	if len(ids) > s.size {
		ids = ids[:s.size]
		page.Next = provider.Cursor(ids[s.size-1])
	}
	for _, id := range ids {
		page.Items = append(page.Items, theProduct(id, s.truth[id]))
	}
	s.mu.Unlock()
	return page, s.around("page " + string(e) + " " + string(c))
}

func (s *scripted) Profile(context.Context, provider.Shop) (provider.Profile, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return provider.Profile{}, s.profile
}

func (*scripted) WebhookTopics() []string { return nil }

func (*scripted) Subscriptions(context.Context, provider.Shop) ([]provider.Subscription, error) {
	return nil, nil
}

func (*scripted) Subscribe(_ context.Context, _ provider.Shop,
	want provider.Subscription) (provider.Subscription, error) {
	return want, nil
}

func (*scripted) Unsubscribe(context.Context, provider.Shop, string) error { return nil }

// appSecret is also the secret of the documented signature vector.
const appSecret = "test-secret"

const theEndpoint = "whe_1"

// market is an installed shop of the scripted provider, with its webhooks and bootstrap runs on a real
// database.
type market struct {
	*shop
	platform      *scripted
	from          observation.Source
	hooks         *webhook.Service
	loads         *bootstrap.Service
	installations *postgres.Installations
	loader        *bootstrap.Runner
	opener        *shops.Shops
	checker       *shops.Checker
	ingest        *ingest.Service
	privacy       *privacy.Service
	endpoint      ident.EndpointID
}

func newMarket(t testing.TB) *market {
	t.Helper()
	m := &market{shop: newShop(t), platform: newScripted()}
	m.from = m.provided("123")
	m.source = m.from
	keyset, err := seal.NewKeyset()
	if err != nil {
		t.Fatal(err)
	}
	sealer, err := seal.Parse(keyset)
	if err != nil {
		t.Fatal(err)
	}
	m.endpoint = ident.EndpointID(theEndpoint)
	sealed, err := sealer.Seal([]byte("token"), shops.CredentialBinding(m.from.ConnectionID))
	if err != nil {
		t.Fatal(err)
	}
	m.exec(`INSERT INTO control.credentials (connection_id, sealed) VALUES ($1, $2)`,
		m.from.ConnectionID, sealed)
	m.exec(`INSERT INTO control.endpoints (endpoint_id, connection_id, provider, provider_app_id) VALUES ($1, $2, 'tiendanube', 'app')`, m.endpoint, m.from.ConnectionID)
	m.exec(`INSERT INTO control.installations (installation_id, connection_id, provider, provider_app_id, state) VALUES ('ins_1', $1, 'tiendanube', 'app', 'completed')`, m.from.ConnectionID)
	registry, err := provider.NewRegistry(m.platform)
	if err != nil {
		t.Fatal(err)
	}
	book, err := appsecret.Parse("tiendanube/app:" + appSecret)
	if err != nil {
		t.Fatal(err)
	}
	pool := testkit.Pool(t, testkit.PostgresAs(t, m.url, "storefront_control"))
	inserter, err := jobs.NewInserter(pool, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	store, metrics := postgres.NewShops(pool, inserter), ingest.NewMetrics(prometheus.NewRegistry())
	m.opener = shops.New(store, registry, sealer)
	m.checker = shops.NewChecker(m.opener, store)
	m.installations = postgres.NewInstallations(pool, inserter)
	m.ingest = ingest.New(m.catalog, m.opener, metrics, time.Now)
	m.loads = bootstrap.New(m.bootstraps, time.Now)
	m.loader = bootstrap.NewRunner(m.bootstraps, m.opener, metrics, time.Now)
	m.privacy = privacy.New(postgres.NewPrivacy(pool), registry, slog.New(slog.DiscardHandler))
	m.hooks = webhook.New(postgres.NewWebhooks(pool, inserter), registry, book,
		webhook.NewMetrics(prometheus.NewRegistry()), time.Now,
		webhook.Quota{Deliveries: 1 << 20, Bytes: 1 << 30})
	return m
}

func (m *market) exec(sql string, args ...any) {
	m.t.Helper()
	if _, err := m.super.Exec(context.Background(), sql, args...); err != nil {
		m.t.Fatalf("%s: %v", sql, err)
	}
}

// work runs the jobs of the shop until the test ends, without those of the catalog.
func (m *market) work() {
	m.t.Helper()
	pool := testkit.Pool(m.t, testkit.PostgresAs(m.t, m.url, "storefront_control"))
	runner := jobs.NewRunner(jobs.Config{
		Pool: pool, Items: noPush{}, Recomposer: m.catalog, Archive: m.archive,
		Logger: slog.New(slog.DiscardHandler), Holder: m.openSwitch(),
		Metrics: jobs.NewMetrics(prometheus.NewRegistry()),
		Shops: &jobs.ShopWork{
			Refresher: m.ingest, Checker: m.checker, Bootstraps: m.loader, Scheduler: m.bootstraps,
			Marked:  m.catalog,
			Privacy: m.privacy, CatchUpEvery: time.Hour, ReloadEvery: day,
		},
	})
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := runner.Run(ctx); err != nil {
			m.t.Error(err)
		}
	})
	m.t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
}

const day = 24 * time.Hour

type noPush struct{}

func (noPush) Push(context.Context, ident.ConnectionID, []ident.ItemID) error { return nil }

func sign(body string) string { return signWith(appSecret, body) }

func signWith(secret, body string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	return hex.EncodeToString(mac.Sum(nil))
}

// request is a valid webhook.
func (m *market) request(body string) *webhook.Request {
	return &webhook.Request{
		Caller: "tiendanube", Provider: "tiendanube", EndpointID: string(m.endpoint), Signature: sign(body),
		Body: []byte(body),
	}
}

func event(kind provider.EventKind, id string) string {
	return fmt.Sprintf(`{"store":"123","event":%q,"id":%q}`, kind, id)
}

func (m *market) notify(kind provider.EventKind, id string) {
	m.t.Helper()
	if _, err := m.hooks.Receive(context.Background(), m.request(event(kind, id))); err != nil {
		m.t.Error(err)
	}
}

// shown returns the served titles by the provider's ids.
func (m *market) shown() map[string]string {
	m.t.Helper()
	rows, err := m.super.Query(context.Background(),
		`SELECT body FROM control.aggregates WHERE connection_id = $1 AND body IS NOT NULL`,
		m.from.ConnectionID)
	if err != nil {
		m.t.Fatal(err)
	}
	defer rows.Close()
	out := map[string]string{}
	for rows.Next() {
		var body []byte
		var a catalog.CatalogAggregate
		if err := rows.Scan(&body); err != nil {
			m.t.Fatal(err)
		}
		if err := json.Unmarshal(body, &a); err != nil {
			m.t.Fatal(err)
		}
		out[a.Item.ExternalID] = a.Item.Title["en"]
	}
	return out
}

// checkTruth compares what is served with the provider's truth.
func (m *market) checkTruth() {
	m.t.Helper()
	m.platform.mu.Lock()
	defer m.platform.mu.Unlock()
	if got := m.shown(); fmt.Sprint(got) != fmt.Sprint(m.platform.truth) {
		m.t.Errorf("served %v\n the truth is %v", got, m.platform.truth)
	}
}
