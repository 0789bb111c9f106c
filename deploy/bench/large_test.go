package bench

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"storefront.internal/deploy/bench/limit"
	"storefront.internal/deploy/stack/client"
)

const (
	pending = 5_000_000 // interactions that wait
	over    = 1000      // connections
	views   = 200
)

// fillQueue is a queue that an engine has not accepted for long, spread over connections, their eight lanes,
// and time.
const fillQueue = `
INSERT INTO delivery.entries (connection_id, kind, lane, id, body, created_at)
SELECT 'con_bench' || lpad((i % $2)::text, 6, '0'), 1, (i / $2) % 8, 'sig_bench' || i,
	convert_to(repeat('x', 300), 'UTF8'), now() - i * interval '1 millisecond'
FROM generate_series(1, $1::bigint) i`

const fillLanes = `
INSERT INTO delivery.lanes (connection_id, kind, lane, ready)
SELECT DISTINCT connection_id, kind, lane, true FROM delivery.entries`

const fillCounts = `
INSERT INTO delivery.counts (connection_id, kind, pending, unconfirmed)
SELECT connection_id, kind, count(*), 0 FROM delivery.entries GROUP BY connection_id, kind`

const fillConnections = `
INSERT INTO control.connections (connection_id, store_id, provider, external_store_id)
SELECT 'con_bench' || lpad(i::text, 6, '0'), 'str_bench' || lpad(i::text, 6, '0'), 'custom', 'bench ' || i
FROM generate_series(0, $1::integer - 1) i`

// BenchmarkQueueView is the queue view while five million interactions wait, and its cost for the sink.
func BenchmarkQueueView(b *testing.B) {
	s := newDeployment(b)
	s.run(b, fillConnections, over)
	s.run(b, fillQueue, pending, over)
	s.run(b, fillLanes)
	s.run(b, fillCounts)
	s.run(b, `ANALYZE`)
	relay := s.relay()
	for s.number(`SELECT count(*) FROM delivery.lanes WHERE oldest_at = '-infinity'`) > 0 {
		time.Sleep(100 * time.Millisecond) // without a limit: the benchmark has one
	}
	took := make([]time.Duration, views)
	for i := range took {
		took[i] = s.view(b)
	}
	stop(b, relay)
	slices.Sort(took)
	rows.add("the queue view, %d waiting over %d connections: p50 %s  p99 %s", pending, over,
		took[views/2].Round(100*time.Microsecond), took[views*99/100].Round(100*time.Microsecond))
	b.ReportMetric(float64(took[views*99/100].Microseconds())/1000, "p99-ms")
	edge := s.edge(noQuota...)
	alone, asked := s.sinkTwice(b, edge)
	rows.add("sink while the queue view is asked each second ÷ alone: %.3f", asked/alone)
	b.ReportMetric(asked/alone, "asked/alone")
	b.ReportMetric(0, "ns/op")
}

// sinkTwice measures the sink alone and beside a reader of the queue view. The two take turns in changing
// order, since each measurement fills the tables and makes the next one a little slower.
func (s *deployment) sinkTwice(b *testing.B, edge node) (alone, asked float64) {
	b.Helper()
	var rates [2][]float64
	who := s.shoppers(edge, 10)
	for round := range 16 {
		beside := (round + 1) / 2 % 2
		s.fill(b, edge, who, sinkSignals/2)
		done := make(chan struct{})
		var reader sync.WaitGroup
		if beside == 1 {
			reader.Go(func() {
				for tick := time.NewTicker(time.Second); ; {
					select {
					case <-done:
						tick.Stop()
						return
					case <-tick.C:
						s.view(b)
					}
				}
			})
		}
		rate, relay := s.sink(b, sinkSignals/2)
		close(done)
		reader.Wait()
		stop(b, relay)
		rates[beside] = append(rates[beside], rate)
	}
	return median(rates[0]), median(rates[1])
}

// view reads the queue view, which must list all connections, and returns how long the last byte took.
func (s *deployment) view(b *testing.B) time.Duration {
	begun := time.Now()
	r := client.Do(context.Background(), nil, client.Request{Method: http.MethodGet,
		URL: s.api.BaseURL + "/internal/v1/brain-interactions/queue", Token: s.api.BackendToken})
	took := time.Since(begun)
	check(b, r.Err)
	if n := bytes.Count(r.Body, []byte(`"connection_id"`)); r.Status != http.StatusOK || n < over {
		b.Errorf("%d, %d connections", r.Status, n)
	}
	return took
}

// filledLedger is a form of the ledger that is filled: its table, and its key. Each row takes one digest.
type filledLedger struct{ name, table, row, key string }

var filledLedgers = []filledLedger{
	{"rows=digests", "relay.ledger_digests", "gen_random_uuid(), 'epoch'", "digest"},
	{"rows=of-the-release-before", "relay.ledger",
		"'con_bench' || lpad((i % 1000)::text, 6, '0'), gen_random_uuid(), 'epoch'", "connection_id, digest"},
}

// BenchmarkFilledLedger is the sink with many million signals in the ledger (LEDGER_ROWS) and with none, and
// a bare insert into the same ledgers. The rows are of this release, or of the one before.
func BenchmarkFilledLedger(b *testing.B) {
	for _, f := range filledLedgers {
		b.Run(f.name, func(b *testing.B) { benchmarkFilledLedger(b, f) })
	}
}

func benchmarkFilledLedger(b *testing.B, f filledLedger) {
	s, stored := newDeployment(b), ledgerRows(b)
	edge := s.edge(noQuota...)
	who := s.shoppers(edge, 10)
	s.fill(b, edge, who, sinkSignals)
	empty, relay := s.sink(b, sinkSignals)
	stop(b, relay)
	begun := time.Now()
	s.fillLedger(b, f, stored)
	took := time.Since(begun)
	s.fill(b, edge, who, sinkSignals)
	filled, relay := s.sink(b, sinkSignals)
	stop(b, relay)
	size := s.number(`SELECT sum(pg_total_relation_size(inhrelid))::bigint
		FROM pg_inherits WHERE inhparent = $1::regclass`, f.table)
	rows.add("%s: %d rows, filled in %s, %.1f GB; cost per signal ÷ with none: %.2f "+
		"(%.0f and %.0f signals/s)", f.name, stored, took.Round(time.Second), float64(size)/1e9,
		empty/filled, filled, empty)
	bare := s.copiedInto(b)
	rows.add("cost per signal ÷ of a bare copy into the same filled ledger (%.0f signals/s): %.2f", bare,
		bare/filled)
	b.ReportMetric(bare/filled, "filled/copy")
	b.ReportMetric(empty/filled, "filled/empty")
	b.ReportMetric(0, "ns/op")
}

const (
	fillers   = 4         // sessions that fill
	fillChunk = 1_000_000 // rows of a statement
)

// fillLedger adds rows by several sessions. The key is made afterwards, since an index of random keys is slow
// to fill row by row; its pages are filled as far as random inserts fill them.
func (s *deployment) fillLedger(b *testing.B, f filledLedger, n int) {
	b.Helper()
	_, name, _ := strings.Cut(f.table, ".")
	s.run(b, `ALTER TABLE relay.ledger DISABLE TRIGGER insert_digest`)
	s.run(b, fmt.Sprintf(`ALTER TABLE %s DROP CONSTRAINT %s_pkey`, f.table, name))
	s.run(b, fmt.Sprintf(`DO $$ BEGIN FOR part IN 0..15 LOOP
		EXECUTE format('ALTER TABLE %s_%%s SET (autovacuum_enabled = off)', lpad(part::text, 2, '0'));
		END LOOP; END $$`, f.table))
	var sessions errgroup.Group
	sessions.SetLimit(fillers)
	insert := fmt.Sprintf(`INSERT INTO %s SELECT %s FROM generate_series(1, $1::bigint) i`, f.table, f.row)
	for left := n; left > 0; left -= fillChunk {
		sessions.Go(func() error { return s.execute(insert, min(left, fillChunk)) })
	}
	check(b, sessions.Wait())
	s.run(b, fmt.Sprintf(`SET maintenance_work_mem = '1GB';
		ALTER TABLE %s ADD PRIMARY KEY (%s) WITH (fillfactor = 70)`, f.table, f.key))
	s.run(b, `ALTER TABLE relay.ledger ENABLE TRIGGER insert_digest`)
	s.run(b, `VACUUM ANALYZE `+f.table)
	s.run(b, `CHECKPOINT`)
}

// copiedInto removes what the sink wrote, copies it again beside the signals that were there, and returns
// signals a second.
func (s *deployment) copiedInto(b *testing.B) float64 {
	b.Helper()
	tables := s.tables(b, ` WHERE stored_at > 'epoch'`)
	s.run(b, `DELETE FROM relay.ledger_digests WHERE stored_at > 'epoch'`)
	s.run(b, `TRUNCATE relay.signals, relay.audit, relay.cart_lines, delivery.entries`)
	s.run(b, `VACUUM ANALYZE relay.ledger_digests`)
	took, err := limit.Copy(context.Background(), s.Settings.Database, tables, 2*sinkSignals/transaction)
	check(b, err)
	return 2 * sinkSignals / took.Seconds()
}

// run executes SQL as superuser.
func (s *deployment) run(b *testing.B, sql string, args ...any) {
	b.Helper()
	check(b, s.execute(sql, args...))
}

func (s *deployment) execute(sql string, args ...any) error {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, s.Settings.Database)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, sql, args...); err != nil {
		return fmt.Errorf("%s: %w", sql, err)
	}
	return nil
}
