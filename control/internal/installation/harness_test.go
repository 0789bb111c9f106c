package installation_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"storefront.internal/control/internal/appsecret"
	"storefront.internal/control/internal/installation"
	"storefront.internal/control/internal/jobs"
	"storefront.internal/control/internal/postgres"
	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/seal"
	"storefront.internal/control/internal/shop"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/testkit"
)

const accessToken = "canary-access-token"

// stub is a provider that stores subscriptions and fails where a test wants it. Its other methods are never
// called.
type stub struct {
	provider.Adapter
	mu     sync.Mutex
	topics []string
	held   []provider.Subscription
	calls  int
	made   int
	fail   func(call int) error // before a call has its effect
	after  func(call int) error // behind it
	token  string
}

func (*stub) Name() string              { return "stub" }
func (s *stub) WebhookTopics() []string { return s.topics }

// call counts a call and executes it between its two failpoints.
func (s *stub) call(store provider.Shop, do func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	s.token = store.Credential.Reveal()
	if s.fail != nil {
		if err := s.fail(s.calls); err != nil {
			return err
		}
	}
	do()
	if s.after != nil {
		return s.after(s.calls)
	}
	return nil
}

func (s *stub) Subscriptions(_ context.Context,
	store provider.Shop) (out []provider.Subscription, err error) {
	err = s.call(store, func() { out = append(out, s.held...) })
	return out, err
}

func (s *stub) Subscribe(_ context.Context, store provider.Shop,
	want provider.Subscription) (provider.Subscription, error) {
	err := s.call(store, func() {
		s.made++
		want.ID = fmt.Sprint(s.made)
		s.held = append(s.held, want)
	})
	return want, err
}

func (s *stub) Unsubscribe(_ context.Context, store provider.Shop, id string) error {
	return s.call(store, func() {
		for i, sub := range s.held {
			if sub.ID == id {
				s.held = append(s.held[:i:i], s.held[i+1:]...)
				return
			}
		}
	})
}

// loads counts the bootstrap runs that were opened.
type loads struct {
	opened int
	fail   func() error
}

func (l *loads) Start(context.Context, ident.ConnectionID) error {
	if l.fail != nil {
		if err := l.fail(); err != nil {
			return err
		}
	}
	l.opened++
	return nil
}

// bundle is the package with real tables, under control's role, and a stub provider.
type bundle struct {
	t       *testing.T
	db      *pgxpool.Pool // a superuser's
	pool    *pgxpool.Pool
	store   *postgres.Installations
	stub    *stub
	loads   *loads
	service *installation.Service
	shops   *shop.Shops
	hooks   *installation.Subscriptions
	metrics *installation.Metrics
	runner  *installation.Runner
	log     *strings.Builder
}

func newBundle(t *testing.T) *bundle {
	t.Helper()
	url := testkit.PostgresWith(t, "river0510", jobs.Migrate)
	b := &bundle{t: t, db: testkit.Pool(t, url), pool: testkit.Pool(t,
		testkit.PostgresAs(t, url, "storefront_control")),
		stub: &stub{topics: []string{"a/made", "b/made", "c/made"}}, loads: &loads{}, log: &strings.Builder{}}
	logger := slog.New(slog.NewTextHandler(b.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	inserter, err := jobs.NewInserter(b.pool, logger)
	if err != nil {
		t.Fatal(err)
	}
	keyset, err := seal.NewKeyset()
	if err != nil {
		t.Fatal(err)
	}
	sealer, err := seal.Parse(keyset)
	if err != nil {
		t.Fatal(err)
	}
	secrets, err := appsecret.Parse("stub/app:canary-secret,stub/app-2:canary-secret")
	if err != nil {
		t.Fatal(err)
	}
	registry, err := provider.NewRegistry(b.stub)
	if err != nil {
		t.Fatal(err)
	}
	b.store = postgres.NewInstallations(b.pool, inserter)
	b.service = installation.NewService(installation.Config{Store: b.store, Sealer: sealer,
		Providers: registry, Secrets: secrets, Now: time.Now})
	b.shops = shop.New(postgres.NewShops(b.pool, inserter), registry, sealer)
	b.hooks = installation.NewSubscriptions(b.store, secrets, "https://hooks.test/in/")
	b.metrics = installation.NewMetrics(prometheus.NewRegistry())
	b.runner = installation.NewRunner(installation.RunnerConfig{
		Store: b.store, Shops: b.shops, Bootstraps: b.loads, Subscriptions: b.hooks,
		Metrics: b.metrics, Logger: logger,
	})
	return b
}

func (b *bundle) install(app string) installation.Installed {
	b.t.Helper()
	got, err := b.service.Open(b.t.Context(), "stub", installation.Request{Provider: "stub", AppID: app,
		ExternalStoreID: "1", AccessToken: accessToken})
	if err != nil {
		b.t.Fatal(err)
	}
	return got
}

func (b *bundle) run(of installation.Installed, epoch int) (snooze time.Duration, err error) {
	return b.runner.Run(b.t.Context(), installation.Ref{ID: of.InstallationID, Epoch: epoch})
}

// requeue requeues sagas without a job, and checks how many jobs there are afterwards.
func (b *bundle) requeue(want string) {
	b.t.Helper()
	const jobs = `SELECT count(*)::text FROM control.river_job WHERE kind = 'installation_saga'`
	before := b.text(jobs)
	if err := b.store.RequeueInstallations(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	if got := b.text(jobs); got != want {
		b.t.Errorf("%s sagas have a job, before %s, want %s", got, before, want)
	}
}

func (b *bundle) text(sql string) (out string) {
	b.t.Helper()
	if err := b.db.QueryRow(b.t.Context(), sql).Scan(&out); err != nil {
		b.t.Fatal(err)
	}
	return out
}

func (b *bundle) exec(sql string) {
	b.t.Helper()
	if _, err := b.db.Exec(b.t.Context(), sql); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bundle) state() string {
	return b.text(`SELECT concat_ws(' ', state, reason, attempts) FROM control.installations`)
}

// whole checks that the provider has each topic exactly once, at the endpoint of that topic.
func (b *bundle) whole() {
	b.t.Helper()
	seen := map[string]int{}
	for _, sub := range b.stub.held {
		id, ours := strings.CutPrefix(sub.URL, "https://hooks.test/in/stub/")
		if !ours {
			continue
		}
		seen[sub.Topic]++
		if at := b.text(`SELECT coalesce(max(topic), '') FROM control.endpoints WHERE endpoint_id = '` + id +
			`'`); at != sub.Topic || sub.Disabled {
			b.t.Errorf("%s goes to the endpoint of %q", sub.Topic, at)
		}
	}
	for _, topic := range b.stub.topics {
		if seen[topic] != 1 {
			b.t.Errorf("topic %s is subscribed %d times", topic, seen[topic])
		}
	}
	if len(seen) != len(b.stub.topics) {
		b.t.Errorf("subscribed: %v", seen)
	}
}
