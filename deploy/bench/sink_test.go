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

	"storefront.internal/deploy/bench/limit"
	"storefront.internal/deploy/load"
	"storefront.internal/deploy/stack"
)

const (
	sinkSignals = 200_000 // in a measurement of the sink
	transaction = 4000    // signals of one transaction, as the relay's default
)

// written are the tables and columns that the sink's transaction writes.
var written = [][2]string{
	{"relay.ledger_digests", "digest, stored_at"},
	{"relay.signals", "*"},
	{"relay.audit", "*"},
	{"relay.cart_lines", "*"},
	{"delivery.entries",
		"connection_id, kind, lane, id, body, awaits, awaits_minted, attempts, failed_since, not_before, " +
			"created_at"},
}

// BenchmarkSink is the way from Kafka into PostgreSQL by one relay (ledger, signals, audit, carts,
// deliveries, deltas), and a program that copies the same rows into the same tables.
func BenchmarkSink(b *testing.B) {
	s := newDeployment(b)
	edge := s.edge(noQuota...)
	s.fill(b, edge, s.shoppers(edge, 10), sinkSignals)
	rate, relay := s.sink(b, sinkSignals)
	rows.add("sink, one relay: %.0f signals/s, CPU %s a signal, %.0f MiB resident", rate,
		(relay.cpu(b) / sinkSignals).Round(100*time.Nanosecond), residentOf(b, relay.Pid()))
	bare := s.copied(b)
	rows.add("sink ÷ a program that copies the same rows (%.0f signals/s): %.2f", bare, rate/bare)
	b.ReportMetric(rate, "signals/s")
	b.ReportMetric(rate/bare, "sink/copy")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkDeliverInteractions is the way from the queue to an engine on this machine that only counts.
func BenchmarkDeliverInteractions(b *testing.B) {
	s := newDeployment(b)
	edge := s.edge(noQuota...)
	s.fill(b, edge, s.shoppers(edge, 10), sinkSignals)
	_, relay := s.sink(b, sinkSignals)
	stop(b, relay)
	engine := newEngine(b, s.Settings.EngineToken)
	s.Settings.EngineURL, s.Settings.EngineSecret = engine.url, s.Settings.EngineToken
	relay = s.relay()
	var rate float64
	profile(b, relay, "relay-deliver", func() { rate = engine.awaits(b, sinkSignals) })
	rows.add("delivery by one relay: %.0f interactions/s in requests of %.0f, CPU %s each, %.0f MiB "+
		"resident", rate, engine.perRequest(),
		(relay.cpu(b) / sinkSignals).Round(100*time.Nanosecond), residentOf(b, relay.Pid()))
	b.ReportMetric(rate, "interactions/s")
	b.ReportMetric(0, "ns/op")
}

// shoppers makes so many connections.
func (s *deployment) shoppers(edge node, n int) []load.Shopper {
	all := make([]load.Shopper, n)
	for i := range all {
		all[i] = s.shopper(edge)
	}
	return all
}

// fill records signals that no relay reads yet.
func (s *deployment) fill(b *testing.B, edge node, all []load.Shopper, n int) {
	b.Helper()
	run, now := random(4), time.Now()
	batches := make([]*load.Batch, len(all))
	for i, who := range all {
		who.Signals = 50
		batches[i] = load.NewBatch(who, fmt.Sprintf("%s%02d", run, i), now)
	}
	each := n / len(all) / 50
	left := slices.Repeat([]int{each}, len(all))
	_, err := load.Times(load.Case{
		Address: edge.address, Connections: len(all),
		Request: func(i int) []byte { return batches[i].Next() },
		Answer: func(_, status int, body []byte) error {
			if status != http.StatusAccepted || bytes.Count(body, []byte(`"accepted"`)) != 50 {
				return fmt.Errorf("%d %s", status, body)
			}
			return nil
		},
	}, left)
	check(b, err)
}

// sink starts a relay and returns the rate at which it stores what waits.
func (s *deployment) sink(b *testing.B, n int) (rate float64, relay node) {
	b.Helper()
	relay = s.relay()
	profile(b, relay, "relay-sink", func() { rate = stores(b, relay, n) })
	return rate, relay
}

// stores waits until a relay has stored so many signals and returns the rate since its first ones.
func stores(b *testing.B, relay node, n int) float64 {
	b.Helper()
	var first time.Time
	var before int
	deadline := time.Now().Add(5 * time.Minute)
	for ; time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		stored, err := metric(relay.Admin, `storefront_relay_sink_signals_total{result="stored"}`)
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

// copied copies what the sink wrote into another database and returns signals a second.
func (s *deployment) copied(b *testing.B) float64 {
	b.Helper()
	tables := s.tables(b, "")
	took, err := limit.Copy(context.Background(), s.sibling(b), tables, sinkSignals/transaction)
	check(b, err)
	return sinkSignals / took.Seconds()
}

// tables are the rows that the sink wrote, with those of the ledger that the condition selects.
func (s *deployment) tables(b *testing.B, ledgerWhere string) (all []limit.Table) {
	b.Helper()
	for _, t := range written {
		columns := t[1]
		if columns == "*" {
			columns = s.columns(b, t[0])
		}
		of := ""
		if t[0] == "relay.ledger_digests" {
			of = ledgerWhere
		}
		rows, err := limit.Read(context.Background(), s.Settings.Database, t[0], columns, of)
		check(b, err)
		all = append(all, rows)
	}
	return all
}

func (s *deployment) columns(b *testing.B, table string) string {
	b.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, s.Settings.Database)
	check(b, err)
	defer func() { _ = conn.Close(ctx) }()
	rows, err := conn.Query(ctx,
		`SELECT attname FROM pg_attribute
		WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''
		ORDER BY attnum`, table)
	check(b, err)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	check(b, err)
	return strings.Join(names, ", ")
}

// sibling makes an empty database with the same tables.
func (s *deployment) sibling(b *testing.B) string {
	b.Helper()
	url, err := stack.WithDatabase(s.Settings.Database, "bench_"+random(6))
	check(b, err)
	other := s.Settings
	other.Database = url
	check(b, other.Prepare(context.Background()))
	b.Cleanup(func() { dropDatabase(b, url) })
	return url
}
