package postgres_test

import (
	"testing"
	"time"

	"storefront.internal/control/internal/observation"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/pg"
)

func TestTheArchivesDays(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	days := func() int {
		return scan[int](s, `SELECT count(*) FROM pg_inherits WHERE inhparent = 'control.observations'::regclass`)
	}
	before := days()
	if ahead, err := s.archive.EnsurePartitions(t.Context(), 9); err != nil || ahead != 9 ||
		days() < before+2 {
		t.Errorf("%d days ahead, %d tables after %d, %v", ahead, days(), before, err)
	}
	// An observation of a day without a partition is stored and read all the same, and counted.
	service := observation.New(s.catalog, s.archive, s.metrics,
		func() time.Time { return time.Now().AddDate(0, 0, -40) }, 1<<20)
	results, err := service.Deliver(t.Context(), s.source, []byte(`{"observations":[`+category("c", 1,
		"old")+`,{"entity":"order","external_id":"o","revision":1}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.service.Snapshot(t.Context(), results[0].ObservationID); err != nil ||
		got.ExternalID != "c" {
		t.Errorf("%+v, %v", got, err)
	}
	if f, err := s.store.Figures(t.Context(), anHour()); err != nil || f.DefaultRows != 2 ||
		f.Quarantined != 1 || f.PushLag != 0 {
		t.Errorf("figures %+v, %v", f, err)
	}
	s.one(observation.Accepted, product("p", 1, "t"))
	if f, err := s.store.Figures(t.Context(), anHour()); err != nil || f.PushLag <= 0 {
		t.Errorf("a push waits: %+v, %v", f, err)
	}
	// Old days are dropped; the last thirty cannot be dropped.
	if _, err := s.super.Exec(t.Context(),
		`CREATE TABLE control.observations_p20200101 PARTITION OF control.observations FOR VALUES FROM ('2020-01-01Z') TO ('2020-01-02Z')`); err != nil {
		t.Fatal(err)
	}
	drop := func(age int) (int, bool, error) {
		return s.archive.DropPartitions(t.Context(), time.Now().AddDate(0, 0, -age))
	}
	reader, err := s.super.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reader.Exec(t.Context(), `SELECT FROM control.observations_p20200101`); err != nil {
		t.Fatal(err)
	}
	if n, inUse, err := drop(31); err != nil || n != 0 || !inUse {
		t.Errorf("a day that is read: %d days dropped, in use %t, %v", n, inUse, err)
	}
	if err := reader.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n, inUse, err := drop(31); err != nil || n != 1 || inUse {
		t.Errorf("%d days dropped, in use %t, %v", n, inUse, err)
	}
	if _, _, err := drop(29); err == nil {
		t.Error("a young day could be dropped")
	}
}

// TestRawBodiesOfProviders inserts the archive of a provider's connection directly.
func TestRawBodiesOfProviders(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	r := s.one(observation.Accepted, product("p", 1, "t"))
	if _, err := s.service.Raw(t.Context(), r.ObservationID); !fault.Is(err, fault.NotFound) {
		t.Errorf("raw of a custom observation: %v", err)
	}
	if _, err := s.super.Exec(t.Context(),
		`UPDATE control.connections SET provider = 'shopify'`); err != nil {
		t.Fatal(err)
	}
	if raw, err := s.service.Raw(t.Context(), r.ObservationID); err != nil ||
		string(raw) != product("p", 1, "t") {
		t.Errorf("%s, %v", raw, err)
	}
	if _, err := s.service.Snapshot(t.Context(), r.ObservationID); !fault.Is(err, fault.NotFound) {
		t.Errorf("snapshot of a provider's observation: %v", err)
	}
	for _, id := range []ident.ObservationID{"obs_1", ident.ObservationID(ident.RandomAt(ident.Observation,
		time.Now()))} {
		if _, err := s.service.Raw(t.Context(), id); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: %v", id, err)
		}
	}
	if _, err := s.super.Exec(t.Context(), `INSERT INTO control.observations (observation_id, minted_at, connection_id, entity, external_id, revision, operation, state, raw)
		VALUES ('obs_1', now(), 'con_1', 'order', 'x', 1, 'upsert', 'accepted', '')`); pg.SQLState(err) != "23514" {
		t.Errorf("an accepted observation without digest and document: %v", err)
	}
}
