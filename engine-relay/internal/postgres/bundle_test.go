package postgres_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"storefront.internal/engine-relay/internal/postgres"
	"storefront.internal/engine-relay/internal/sink"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/pg"
	"storefront.internal/shared/settings"
	"storefront.internal/shared/signal"
	"storefront.internal/shared/testkit"
)

// bundle is a database of the test's own, seen as its owner (for looking) and as the relay (for everything
// that is tested), and a sink over it.
type bundle struct {
	owner  *pgxpool.Pool
	relay  *pgxpool.Pool
	url    string
	store  *postgres.Store
	writer *sink.Writer
}

func setup(t testing.TB) *bundle {
	t.Helper()
	url := testkit.Postgres(t)
	b := &bundle{owner: testkit.Pool(t, url), url: testkit.PostgresAs(t, url, "storefront_relay")}
	var err error
	b.relay, err = pg.Open(
		t.Context(),
		settings.Postgres{DatabaseURL: settings.Secret(b.url), MaxConns: 4},
		"relay-test",
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.relay.Close)
	b.store = postgres.New(b.relay)
	b.writer = writer(b.store)
	return b
}

func writer(s sink.Store) *sink.Writer { return writerThat(s, func() {}) }

// writerThat calls failed instead of waiting, after each attempt that failed.
func writerThat(s sink.Store, failed func()) *sink.Writer {
	return sink.New(
		sink.Config{
			Store:   s,
			Logger:  discard(),
			Metrics: metrics(),
			Pause: func(ctx context.Context, _ int) error {
				failed()
				return ctx.Err()
			},
		},
	)
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

func metrics() *sink.Metrics { return sink.NewMetrics(prometheus.NewRegistry()) }

// record stores the messages as one batch.
func (b *bundle) record(t testing.TB, messages ...sink.Message) {
	t.Helper()
	if err := b.writer.Write(t.Context(), gather(t, messages...)); err != nil {
		t.Fatal(err)
	}
}

func gather(t testing.TB, messages ...sink.Message) *sink.Batch {
	t.Helper()
	batch := &sink.Batch{}
	for _, m := range messages {
		add := batch.AddSignals
		if m.Topic == decisionsTopic {
			add = batch.AddDecision
		}
		if err := add(m); err != nil {
			t.Fatal(err)
		}
	}
	return batch
}

func (b *bundle) count(t testing.TB, query string, args ...any) int {
	t.Helper()
	return one[int](t, b, "SELECT count(*) FROM "+query, args...)
}

func one[T any](t testing.TB, b *bundle, query string, args ...any) T {
	t.Helper()
	var v T
	if err := b.owner.QueryRow(t.Context(), query, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return v
}

func (b *bundle) exec(t testing.TB, query string, args ...any) {
	t.Helper()
	if _, err := b.owner.Exec(t.Context(), query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

func expect[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

const (
	signalsTopic   = "signals"
	decisionsTopic = "decisions"
)

var epoch = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

var offsets atomic.Int64

func message(topic string, value []byte) sink.Message {
	return sink.Message{Topic: topic, Partition: 3, Offset: offsets.Add(1), Value: value}
}

// request is one record of signals of connection con_a.
func request(signals ...signal.Signal) *signal.Record {
	r := &signal.Record{
		RecordID:     uuid.NewString(),
		ConnectionID: "con_a",
		StoreID:      "str_a",
		ReceivedAt:   epoch,
		Audit:        signal.Audit{IP: "203.0.113.9", UserAgent: "test"},
	}
	for i, s := range signals {
		r.Signals = append(r.Signals, signal.Recorded{Index: i, Signal: s})
	}
	return r
}

func signalsOf(r *signal.Record) sink.Message {
	return message(signalsTopic, signal.AppendRecord(nil, r))
}

func batchOf(signals ...signal.Signal) sink.Message { return signalsOf(request(signals...)) }

func act(id string, kind signal.Type, quantity int32) signal.Signal {
	s := signal.Signal{
		ID:         ident.SignalID("sig_" + id),
		Type:       kind,
		OccurredAt: epoch.Add(-time.Minute),
		DecisionID: "dec_1",
	}
	if kind != signal.Impression {
		s.ItemID = "itm_1"
	}
	if quantity >= 0 {
		s.Quantity = &quantity
	}
	return s
}

func click(id string) signal.Signal { return act(id, signal.Click, -1) }

func decision(id ident.DecisionID, engineIDs string, items ...ident.ItemID) sink.Message {
	d := &signal.Decision{
		DecisionID:   id,
		ConnectionID: "con_a",
		StoreID:      "str_a",
		Placement:    "home",
		Source:       "engine",
		ServedAt:     epoch,
	}
	if engineIDs != "" {
		d.EngineIDs = json.RawMessage(engineIDs)
	}
	for i, item := range items {
		d.Items = append(d.Items, signal.DecisionItem{Position: i, ItemID: item})
	}
	return message(decisionsTopic, signal.AppendDecision(nil, d))
}

// body is what waits for the engine under the signal's id.
func (b *bundle) body(t testing.TB, id string) string {
	t.Helper()
	return one[string](
		t,
		b,
		`SELECT convert_from(body, 'UTF8') FROM delivery.entries WHERE id = $1`,
		"sig_"+id,
	)
}

func (b *bundle) line(t testing.TB, item string) string {
	t.Helper()
	return one[string](
		t,
		b,
		`SELECT quantity || ' rev ' || revision FROM relay.cart_lines WHERE item_id = $1`,
		item,
	)
}

func ids(prefix string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("%s%03d", prefix, i)
	}
	return out
}
