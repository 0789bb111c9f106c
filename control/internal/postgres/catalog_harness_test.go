package postgres_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	goredis "github.com/redis/go-redis/v9"

	"storefront.internal/control/internal/connection"
	"storefront.internal/control/internal/jobs"
	"storefront.internal/control/internal/observation"
	"storefront.internal/control/internal/postgres"
	"storefront.internal/control/internal/redis"
	"storefront.internal/shared/catalog"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/settings"
	"storefront.internal/shared/testkit"
)

// shop is the use case with a real database, under the role of production.
type shop struct {
	t          testing.TB
	super      *pgxpool.Pool
	url        string
	registry   *prometheus.Registry
	store      *postgres.Store
	catalog    *postgres.Catalog
	archive    *postgres.Archive
	bootstraps *postgres.Bootstraps
	service    *observation.Service
	metrics    *observation.Metrics
	source     observation.Source
}

func newShop(t testing.TB) *shop {
	t.Helper()
	url := testkit.PostgresWith(t, "river0510", jobs.Migrate)
	pool := testkit.Pool(t, testkit.PostgresAs(t, url, "storefront_control"))
	inserter, err := jobs.NewInserter(pool, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	s := &shop{t: t, super: testkit.Pool(t, url), url: url, registry: prometheus.NewRegistry()}
	s.store = postgres.New(pool, inserter)
	s.catalog = postgres.NewCatalog(pool, inserter, postgres.NewMetrics(s.registry))
	s.archive, s.bootstraps = postgres.NewArchive(pool), postgres.NewBootstraps(s.catalog)
	s.metrics = observation.NewMetrics(s.registry)
	s.service = observation.New(s.catalog, s.archive, s.metrics, time.Now, 128<<20)
	s.source = s.connect("store")
	return s
}

func (s *shop) connect(external string) observation.Source {
	s.t.Helper()
	now := time.Now()
	c := connection.NewConnection{
		ID:      ident.ConnectionID(ident.Mint(ident.Connection, now)),
		StoreID: ident.StoreID(ident.Mint(ident.Store, now)), ExternalStoreID: external,
		TokenID:   ident.ConnectorTokenID(ident.Mint(ident.ConnectorToken, now)),
		TokenHMAC: sha256.Sum256([]byte(external)),
	}
	if err := s.store.CreateCustom(s.t.Context(), c); err != nil {
		s.t.Fatal(err)
	}
	return observation.Source{ConnectionID: c.ID, StoreID: c.StoreID, Provider: observation.ProviderCustom}
}

// runJobs runs the jobs with a real Redis until the test ends, and returns what edges read.
func (s *shop) runJobs() (client *goredis.Client, prefix string) {
	s.t.Helper()
	addr, prefix := testkit.Redis(s.t)
	hot := redis.Open(settings.Redis{RedisAddrs: []string{addr}})
	client = goredis.NewClient(&goredis.Options{Addr: addr})
	pool := testkit.Pool(s.t, testkit.PostgresAs(s.t, s.url, "storefront_control"))
	publisher := observation.NewPublisher(s.catalog, redis.NewItems(hot, prefix), s.metrics)
	runner := jobs.NewRunner(jobs.Config{Pool: pool, Items: publisher, Recomposer: s.catalog,
		Archive: s.archive, Logger: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := runner.Run(ctx); err != nil {
			s.t.Error(err)
		}
	})
	s.t.Cleanup(func() {
		cancel()
		wg.Wait()
		_ = hot.Close()
		_ = client.Close()
	})
	return client, prefix
}

// settled waits until no job of the catalog is unfinished.
func (s *shop) settled() {
	s.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); ; <-tick.C {
		left := scan[int](s,
			`SELECT count(*) FROM control.river_job WHERE state NOT IN ('completed', 'cancelled', 'discarded')`)
		if left == 0 {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("%d jobs are left: %s", left, scan[string](s,
				`SELECT string_agg(kind || ' ' || state || ' ' || coalesce(errors::text, ''), '; ') FROM control.river_job WHERE state NOT IN ('completed')`))
		}
	}
}

func scan[T any](s *shop, sql string, args ...any) (v T) {
	s.t.Helper()
	if err := s.super.QueryRow(context.Background(), sql, args...).Scan(&v); err != nil {
		s.t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// deliver delivers elements unchanged.
func (s *shop) deliver(elements ...string) []observation.Result {
	s.t.Helper()
	results, err := s.service.Deliver(s.t.Context(), s.source,
		[]byte(`{"observations":[`+strings.Join(elements, ",")+`]}`))
	if err != nil {
		s.t.Fatal(err)
	}
	if len(results) != len(elements) {
		s.t.Fatalf("%d results of %d elements", len(results), len(elements))
	}
	for i, r := range results {
		if r.Index != i {
			s.t.Errorf("result %d has index %d", i, r.Index)
		}
	}
	return results
}

// one delivers an element and checks its status.
func (s *shop) one(want observation.Status, element string) observation.Result {
	s.t.Helper()
	r := s.deliver(element)[0]
	if r.Status != want {
		s.t.Errorf("%.200s: %s (%s), want %s", element, r.Status, r.Reason, want)
	}
	return r
}

// retries is how often PostgreSQL ended a transaction.
func (s *shop) retries() float64 {
	s.t.Helper()
	families, err := s.registry.Gather()
	if err != nil {
		s.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "storefront_control_catalog_tx_retries_total" {
			return f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	s.t.Fatal("the metric is not there")
	return 0
}

// served is the aggregate of an item as edges serve it.
type served struct {
	Revision int64
	Body     []byte
	Sellable bool
}

func (s *shop) served(external string) (v served) {
	s.t.Helper()
	err := s.super.QueryRow(context.Background(),
		`SELECT refresh_revision, body, sellable FROM control.aggregates WHERE connection_id = $1 AND item_id = $2`,
		s.source.ConnectionID, catalog.NewItemID(s.source.ConnectionID,
			external)).Scan(&v.Revision, &v.Body, &v.Sellable)
	if err != nil {
		s.t.Fatalf("%s: %v", external, err)
	}
	return v
}

// product is an element; extra members of the item follow its title.
func product(external string, revision int64, title string, categories ...string) string {
	refs := make([]string, len(categories))
	for i, c := range categories {
		refs[i] = fmt.Sprintf(`{"external_id":%q,"name":{"en":"delivered %s"}}`, c, c)
	}
	return fmt.Sprintf(`{"entity":"product","external_id":%q,"revision":%d,"document":{"item":{"title":{"en":%q},"status":"active","taxonomy":[%s]},`+
		`"variants":[{"external_id":"v1","price":{"amount":"10.50","currency":"EUR"}}],"availability":[{"variant_external_id":"v1","sellable":"yes","quantity":3}]}, "raw" : {"n":1.00e2, "t":"%s"}}`,
		external, revision, title, strings.Join(refs, ","), title)
}

func category(external string, revision int64, name string) string {
	return fmt.Sprintf(`{"entity":"category","external_id":%q,"revision":%d,"document":{"name":{"en":%q}}}`,
		external, revision, name)
}

func order(external string, revision int64, status string) string {
	return fmt.Sprintf(`{"entity":"order","external_id":%q,"revision":%d,"document":{"status":%q,"currency":"EUR","total":{"amount":"1","currency":"EUR"},`+
		`"lines":[],"placed_at":"2026-01-02T03:04:05Z","buyer":{"email":"canary-buyer@example.com"}}}`,
		external, revision, status)
}

func deleted(entity, external string, revision int64) string {
	return fmt.Sprintf(`{"entity":%q,"external_id":%q,"revision":%d,"operation":"delete"}`, entity,
		external, revision)
}

// titleOf reads the body of an item.
func titleOf(t testing.TB, body []byte) (title string, refs []catalog.TaxonomyRef, revision int64) {
	t.Helper()
	var a catalog.CatalogAggregate
	if err := json.Unmarshal(body, &a); err != nil {
		t.Fatalf("%v in %q", err, body)
	}
	return a.Item.Title["en"], a.Item.Taxonomy, a.RefreshRevision
}
