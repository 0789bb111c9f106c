package bench

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"storefront.internal/deploy/bench/drive"
	"storefront.internal/deploy/bench/limit"
	"storefront.internal/deploy/local/services"
)

const (
	sinkSignals = 200_000 // in a measurement of the sink
	transaction = 4000    // signals of one transaction, as the relay's default
)

// written is what the sink's transaction writes, and the columns of it.
var written = [][2]string{
	{"relay.ledger", "connection_id, digest, stored_at"},
	{"relay.signals", "*"},
	{"relay.audit", "*"},
	{"relay.cart_lines", "*"},
	{"delivery.entries", "connection_id, kind, lane, id, body, awaits, awaits_minted, attempts, failed_since, not_before, created_at"},
}

// BenchmarkSink is the whole way from Kafka into PostgreSQL by one relay (ledger, signals, audit, carts, deliveries, deltas), and a
// program that copies the same rows into the same tables.
func BenchmarkSink(b *testing.B) {
	s := newStack(b)
	edge := s.edge(noQuota...)
	s.fill(b, edge, s.shoppers(edge, 10), sinkSignals)
	rate, relay := s.sink(b, sinkSignals)
	rows.add("sink, one relay: %.0f signals/s, CPU %s a signal, %.0f MiB resident", rate, (relay.cpu(b) / sinkSignals).Round(100*time.Nanosecond), residentOf(b, relay.Pid()))
	bare := s.copied(b)
	rows.add("sink ÷ a program that copies the same rows (%.0f signals/s): %.2f", bare, rate/bare)
	b.ReportMetric(rate, "signals/s")
	b.ReportMetric(rate/bare, "sink/copy")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkDeliver is the way from the queue to an engine on this machine that only counts.
func BenchmarkDeliverInteractions(b *testing.B) {
	s := newStack(b)
	edge := s.edge(noQuota...)
	s.fill(b, edge, s.shoppers(edge, 10), sinkSignals)
	_, relay := s.sink(b, sinkSignals)
	stop(b, relay.Process)
	engine := newEngine(b, s.settings.EngineToken)
	s.settings.EngineURL, s.settings.EngineSecret = engine.url, s.settings.EngineToken
	relay = s.relay()
	var rate float64
	profile(b, relay, "relay-deliver", func() { rate = engine.awaits(b, sinkSignals) })
	rows.add("delivery by one relay: %.0f interactions/s in requests of %.0f, CPU %s each, %.0f MiB resident", rate, engine.perRequest(),
		(relay.cpu(b) / sinkSignals).Round(100*time.Nanosecond), residentOf(b, relay.Pid()))
	b.ReportMetric(rate, "interactions/s")
	b.ReportMetric(0, "ns/op")
}

// shoppers makes so many connections.
func (s *stack) shoppers(edge node, n int) []drive.Shopper {
	all := make([]drive.Shopper, n)
	for i := range all {
		all[i] = s.shopper(edge)
	}
	return all
}

// fill has signals accepted that no relay reads yet.
func (s *stack) fill(b *testing.B, edge node, all []drive.Shopper, n int) {
	b.Helper()
	run, now := random(4), time.Now()
	batches := make([]*drive.Batch, len(all))
	for i, who := range all {
		who.Signals = 50
		batches[i] = drive.NewBatch(who, fmt.Sprintf("%s%02d", run, i), now)
	}
	each := n / len(all) / 50
	left := slices.Repeat([]int{each}, len(all))
	_, err := drive.Times(drive.Case{
		Address: edge.address, Connections: len(all), Request: func(i int) []byte { return batches[i].Next() },
		Answer: func(_, status int, body []byte) error {
			if status != http.StatusAccepted || bytes.Count(body, []byte(`"accepted"`)) != 50 {
				return fmt.Errorf("%d %s", status, body)
			}
			return nil
		},
	}, left)
	check(b, err)
}

// sink starts a relay and answers the rate at which it stores what waits.
func (s *stack) sink(b *testing.B, n int) (rate float64, relay node) {
	b.Helper()
	relay = s.relay()
	profile(b, relay, "relay-sink", func() { rate = stores(b, relay, n) })
	return rate, relay
}

// stores waits until a relay has stored so many signals and answers how many it stored a second, since its first ones.
func stores(b *testing.B, relay node, n int) float64 {
	b.Helper()
	var first time.Time
	var before int
	for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		stored, err := metric(relay.admin, `storefront_relay_sink_signals_total{result="stored"}`)
		check(b, err)
		if stored > 0 && first.IsZero() {
			first, before = time.Now(), int(stored)
		}
		if int(stored) >= n {
			return float64(n-before) / time.Since(first).Seconds()
		}
	}
	b.Fatal("the relay has not stored what waits")
	return 0
}

// copied copies what the sink wrote into a database of its own and answers signals a second.
func (s *stack) copied(b *testing.B) float64 {
	b.Helper()
	tables := s.tables(b, "")
	took, err := limit.Copy(context.Background(), s.sibling(b), tables, sinkSignals/transaction)
	check(b, err)
	return sinkSignals / took.Seconds()
}

// tables is what the sink wrote.
func (s *stack) tables(b *testing.B, where string) (all []limit.Table) {
	b.Helper()
	for _, t := range written {
		columns := t[1]
		if columns == "*" {
			columns = s.columns(b, t[0])
		}
		rows, err := limit.Read(context.Background(), s.settings.Database, t[0], columns, where)
		check(b, err)
		all = append(all, rows)
	}
	return all
}

func (s *stack) columns(b *testing.B, table string) string {
	b.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, s.settings.Database)
	check(b, err)
	defer func() { _ = conn.Close(ctx) }()
	rows, err := conn.Query(ctx, `SELECT attname FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = '' ORDER BY attnum`, table)
	check(b, err)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	check(b, err)
	return strings.Join(names, ", ")
}

// sibling makes an empty database with the same tables.
func (s *stack) sibling(b *testing.B) string {
	b.Helper()
	ctx := context.Background()
	name := "bench_" + random(6)
	check(b, services.EnsureDatabase(ctx, s.settings.Database, name))
	b.Cleanup(func() { drop(b, s.settings.Database, name) })
	url, err := services.WithDatabase(s.settings.Database, name)
	check(b, err)
	other := s.settings
	other.Database = url
	_, err = other.Once(ctx, other.Migrate(), "migrate", "up")
	check(b, err)
	return url
}
