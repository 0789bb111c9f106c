package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/segmentio/kafka-go"

	"storefront.internal/shared/ident"
	"storefront.internal/shared/settings"
	"storefront.internal/shared/signal"
	"storefront.internal/shared/stream"
	"storefront.internal/shared/testkit"
)

// bundle is a database, topics and a group of the test's own, and relays over them.
type bundle struct {
	t                  *testing.T
	owner              *pgxpool.Pool
	environ            []string
	signals, decisions string
	group              string
	produce            map[string]*stream.Producer
}

func setup(t *testing.T) *bundle {
	t.Helper()
	brokers := testkit.Kafka(t)
	url := testkit.Postgres(t)
	b := &bundle{
		t:         t,
		owner:     testkit.Pool(t, url),
		signals:   testkit.Topic(t, 4),
		decisions: testkit.Topic(t, 2),
		group:     testkit.Name("relay-"),
	}
	b.environ = []string{
		"RELAY_DATABASE_URL=" + testkit.PostgresAs(t, url, "storefront_relay"),
		"RELAY_DATABASE_MAX_CONNS=8",
		"RELAY_KAFKA_BROKERS=" + strings.Join(
			brokers,
			",",
		),
		"RELAY_KAFKA_GROUP=" + b.group,
		"RELAY_ADMIN_LISTEN=127.0.0.1:0",
	}
	b.produce = make(map[string]*stream.Producer)
	for _, topic := range []string{b.signals, b.decisions} {
		p := stream.NewProducer(stream.ProducerConfig{Brokers: brokers, Topic: topic})
		b.produce[topic] = p
		t.Cleanup(func() {
			if err := p.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	return b
}

// relay starts a relay; the function that it returns stops it in order.
func (b *bundle) relay(environ ...string) (*App, func()) {
	b.t.Helper()
	var cfg Config
	if err := settings.Load(Prefix, &cfg,
		append(append([]string(nil), b.environ...), environ...)); err != nil {
		b.t.Fatal(err)
	}
	cfg.SignalsTopic, cfg.DecisionsTopic = b.signals, b.decisions
	a, err := New(b.t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			b.t.Error(err)
		}
	})
	b.t.Cleanup(stop)
	return a, stop
}

func (b *bundle) send(topic string, value []byte) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 20*time.Second)
	defer cancel()
	for {
		outcome, err := b.produce[topic].Produce(ctx, value)
		if outcome == stream.Acknowledged {
			return
		}
		if ctx.Err() != nil {
			b.t.Fatalf("produce: %v, %v", outcome, err)
		}
	}
}

// commit moves the group, which has no member, to the offset on every partition of the signals.
func (b *bundle) commit(offset int64) {
	b.t.Helper()
	client := &kafka.Client{
		Addr:      kafka.TCP(testkit.Kafka(b.t)...),
		Timeout:   20 * time.Second,
		Transport: &kafka.Transport{},
	}
	var commits []kafka.OffsetCommit
	for partition := range 4 {
		commits = append(commits, kafka.OffsetCommit{Partition: partition, Offset: offset})
	}
	b.eventually("a committed offset", func() bool {
		res, err := client.OffsetCommit(
			b.t.Context(),
			&kafka.OffsetCommitRequest{GroupID: b.group, GenerationID: -1,
				Topics: map[string][]kafka.OffsetCommit{b.signals: commits}},
		)
		return err == nil && res.Topics[b.signals][0].Error == nil
	})
}

func (b *bundle) sendSignals(ids ...string) {
	b.t.Helper()
	quantity := int32(1)
	r := &signal.Record{
		RecordID:     uuid.NewString(),
		ConnectionID: "con_a",
		StoreID:      "str_a",
		ReceivedAt:   time.Now().UTC(),
	}
	for i, id := range ids {
		r.Signals = append(
			r.Signals,
			signal.Recorded{
				Index: i,
				Signal: signal.Signal{ID: ident.SignalID("sig_" + id), Type: signal.AddToCart,
					OccurredAt: r.ReceivedAt, DecisionID: "dec_1", ItemID: "itm_1", Quantity: &quantity},
			},
		)
	}
	b.send(b.signals, signal.AppendRecord(nil, r))
}

// await waits until the query says true.
func (b *bundle) await(what, query string, args ...any) {
	b.t.Helper()
	b.eventually(what, func() bool {
		var ok bool
		if err := b.owner.QueryRow(b.t.Context(), query, args...).Scan(&ok); err != nil {
			b.t.Fatalf("%s: %v", what, err)
		}
		return ok
	})
}

// eventually asks again and again, which is how anything outside of the process is waited for.
func (b *bundle) eventually(what string, ok func() bool) {
	b.t.Helper()
	deadline := time.Now().Add(45 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			b.t.Fatalf("not in time: %s", what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (b *bundle) ready(a *App) (bool, string) {
	res, err := http.Get("http://" + a.AdminAddr() + "/readyz?verbose")
	if err != nil {
		return false, err.Error()
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(res.Body)
	return res.StatusCode == http.StatusOK, string(text)
}

func (b *bundle) metric(a *App, name string) string {
	res, err := http.Get("http://" + a.AdminAddr() + "/metrics")
	if err != nil {
		return ""
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(res.Body)
	for line := range strings.Lines(string(text)) {
		if rest, found := strings.CutPrefix(line, name+" "); found {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

// stubEngine takes every interaction and remembers it.
type stubEngine struct {
	*httptest.Server
	mu     sync.Mutex
	seen   []json.RawMessage
	traces []string // the header Traceparent of each request
}

func newEngine(t *testing.T) *stubEngine {
	e := &stubEngine{}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Interactions []json.RawMessage `json:"interactions"`
		}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		var results []string
		e.mu.Lock()
		e.traces = append(e.traces, r.Header.Get("Traceparent"))
		for i, one := range in.Interactions {
			e.seen = append(e.seen, one)
			results = append(results, fmt.Sprintf(`{"index":%d,"status":"created"}`, i))
		}
		e.mu.Unlock()
		fmt.Fprintf(w, `{"results":[%s]}`, strings.Join(results, ","))
	}))
	t.Cleanup(e.Close)
	return e
}

func (e *stubEngine) traceparents() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.traces)
}

func (e *stubEngine) bodies() []json.RawMessage {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]json.RawMessage(nil), e.seen...)
}
