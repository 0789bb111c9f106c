package postgres_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"storefront.internal/engine-relay/internal/postgres"
	"storefront.internal/engine-relay/internal/upkeep"
	"storefront.internal/shared/pg"
	"storefront.internal/shared/settings"
	"storefront.internal/shared/testkit"
)

// mostStall is how long dropping a day may hold up a transaction of the sink.
const mostStall = 200 * time.Millisecond

// TestDroppingADayDoesNotHoldUpTheSink drops days again and again, under a sink that writes, while a
// transaction has read one of them, as an analyst's query does, and while one holds all tables, as pg_dump
// does. PostgreSQL itself ends a statement of this sink that waits for a lock for longer than mostStall.
// A round in which the machine stood still says nothing and is repeated.
func TestDroppingADayDoesNotHoldUpTheSink(t *testing.T) {
	t.Parallel()
	b := setup(t)
	readers := map[string]string{
		"a query": `SELECT count(*) FROM relay.signals_p20200101`,
		"a dump": `LOCK TABLE relay.signals, relay.audit, relay.decisions, relay.cart_lines IN ACCESS SHARE MODE;
			SELECT count(*) FROM relay.signals`,
	}
	for name, reads := range readers {
		for round := 1; ; round++ {
			stalls, machine := b.dropBesideReader(t, reads)
			if stalls == 0 {
				break
			}
			if machine < mostStall/10 || round == 8 {
				t.Errorf("%s: %d transactions of the sink waited for longer than %v (the machine: %v)", name,
					stalls, mostStall, machine)
				break
			}
		}
	}
}

// dropBesideReader returns how many transactions of the sink waited for too long, and the longest time for
// which the machine did not run this process.
func (b *bundle) dropBesideReader(t *testing.T, reads string) (stalls int, machine time.Duration) {
	t.Helper()
	b.exec(t, `CREATE TABLE relay.signals_p20200101 PARTITION OF relay.signals
		FOR VALUES FROM ('2020-01-01Z') TO ('2020-01-02Z')`)
	reader, err := b.owner.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := reader.Exec(t.Context(), reads); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	stalled, stood := b.sinkThatWrites(ctx, t), standstill(ctx)
	second := time.Date(2020, 1, 2, 0, 0, 0, 0, time.UTC)
	for range 15 {
		dropped, err := b.store.DropPartition(t.Context(), upkeep.Signals, second)
		if dropped || pg.SQLState(err) != "55P03" {
			t.Fatalf("a day that is read: dropped %t, %v", dropped, err)
		}
	}
	if err := reader.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	for dropped := false; !dropped; { // each attempt needs a moment without a transaction of the sink
		if dropped, err = b.store.DropPartition(t.Context(), upkeep.Signals, second); err != nil &&
			pg.SQLState(err) != "55P03" {
			t.Fatal(err)
		}
	}
	stop()
	return stalled(), stood()
}

// sinkThatWrites writes with two workers until ctx ends. The result waits for them, and returns how many of
// their transactions were ended because they waited for a lock.
func (b *bundle) sinkThatWrites(ctx context.Context, t *testing.T) (stalls func() int) {
	t.Helper()
	pool, err := pg.Open(ctx, settings.Postgres{
		DatabaseURL: settings.Secret(b.url + fmt.Sprintf("&lock_timeout=%d", mostStall.Milliseconds())),
		MaxConns:    4,
	}, "sink-test")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var failed, written atomic.Int64
	for range 2 {
		wg.Go(func() {
			w := writerThat(postgres.New(pool), func() { failed.Add(1) })
			for ctx.Err() == nil {
				batch := gather(t, batchOf(click(testkit.Name(""))))
				if w.Write(context.WithoutCancel(ctx), batch) == nil {
					written.Add(1)
				}
			}
		})
	}
	for written.Load() < 10 {
		time.Sleep(time.Millisecond)
	}
	return func() int {
		wg.Wait()
		pool.Close()
		return int(failed.Load())
	}
}

// standstill measures, until ctx ends, the longest time by which a timer was late.
func standstill(ctx context.Context) (longest func() time.Duration) {
	done := make(chan time.Duration, 1)
	go func() {
		most, last := time.Duration(0), time.Now()
		for ctx.Err() == nil {
			time.Sleep(time.Millisecond)
			most, last = max(most, time.Since(last)), time.Now()
		}
		done <- most
	}()
	return func() time.Duration { return <-done }
}

// TestCartLinesLeaveWithAge: exactly the lines leave that did not change for long, a page at a time, also
// when the work was cut off and begins anew, and a line that changes meanwhile stays.
func TestCartLinesLeaveWithAge(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, `INSERT INTO relay.cart_lines (connection_id, decision_id, item_id, variant_id, updated_at)
		SELECT 'con_a', 'dec_' || i, repeat('i', 60), '', now() - interval '1 day' * (i % 2 * 20)
		FROM generate_series(1, 60000) i`)
	before := time.Now().AddDate(0, 0, -10)
	purge := func(page int64) (deleted int, next int64) {
		t.Helper()
		deleted, next, err := b.store.PurgeCartLines(t.Context(), before, page)
		if err != nil {
			t.Fatal(err)
		}
		return deleted, next
	}
	if _, _, err := b.store.PurgeCartLines(t.Context(), time.Now(), 0); pg.SQLState(err) != "22023" {
		t.Errorf("young lines can be purged: %v", err)
	}
	changing, err := b.owner.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := changing.Exec(t.Context(),
		`UPDATE relay.cart_lines SET updated_at = now() WHERE decision_id = 'dec_1'`); err != nil {
		t.Fatal(err)
	}
	first := make(chan int)
	go func() {
		deleted, _, _ := b.store.PurgeCartLines(t.Context(), before, 0)
		first <- deleted
	}()
	for b.count(t, `pg_locks WHERE NOT granted AND pid IN (
		SELECT pid FROM pg_stat_activity WHERE datname = current_database())`) == 0 {
		time.Sleep(time.Millisecond)
	}
	if err := changing.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	total := <-first // the rest of this pass is cut off
	if total == 0 || total > 20_000 {
		t.Errorf("%d lines are deleted in one transaction", total)
	}
	pages := 0
	for page := int64(0); page > 0 || pages == 0; pages++ {
		var deleted int
		if deleted, page = purge(page); pages == 0 && deleted != 0 {
			t.Errorf("%d lines of the first page are left", deleted)
		} else {
			total += deleted
		}
	}
	if pages < 2 {
		t.Errorf("%d pages", pages)
	}
	expect(t, "deleted", total, 29_999)
	expect(t, "left", b.count(t, `relay.cart_lines`), 30_001)
	expect(t, "old ones left", b.count(t, `relay.cart_lines WHERE updated_at < now() - interval '10 days'`), 0)
	b.record(t, batchOf(act("b", "add_to_cart", 2))) // the sink makes lines as before
	expect(t, "lines", b.count(t, `relay.cart_lines`), 30_002)
}
