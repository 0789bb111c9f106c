package intake_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"storefront.internal/edge/internal/intake"
	"storefront.internal/edge/internal/intake/claimstest"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/signal"
	"storefront.internal/shared/stream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is a Service on fakes.
type bench struct {
	*intake.Service
	memory  *claimstest.Memory
	log     *claimstest.Log
	ledger  *claimstest.Ledger
	records [][]byte
	logged  bytes.Buffer
	turn    func(ctx context.Context) error // fails calls to Redis
	metrics *prometheus.Registry
}

func (b *bench) Produce(ctx context.Context, value []byte) (stream.Outcome, error) {
	b.records = append(b.records, bytes.Clone(value))
	return b.log.Produce(ctx, value)
}

// foreign verifies every Decision id but those of others.
type foreign struct{}

func (foreign) Verify(_ ident.ConnectionID, id string) bool {
	return !strings.HasPrefix(id, "dec_foreign")
}

func newBench(t *testing.T) *bench {
	b := &bench{memory: claimstest.NewMemory(), log: &claimstest.Log{}, metrics: prometheus.NewRegistry()}
	b.ledger = &claimstest.Ledger{Log: b.log}
	claims := b.memory.Connect(func(ctx context.Context) error {
		if b.turn != nil {
			return b.turn(ctx)
		}
		return nil
	})
	b.Service = intake.New(intake.Config{Claims: claims, Producer: b, Ledger: b.ledger, Decisions: foreign{},
		Metrics: intake.NewMetrics(b.metrics), Logger: slog.New(slog.NewTextHandler(&b.logged, nil))})
	return b
}

// answer renders the outcome: the results without their frame, or the fault's code.
func answer(results []signal.Result, err error) string {
	if err != nil {
		return string(fault.From(err).Code)
	}
	var parts []string
	for _, r := range results {
		parts = append(parts, strings.TrimSuffix(fmt.Sprintf("%s:%s:%s", r.SignalID, r.Status, r.Reason), ":"))
	}
	return strings.Join(parts, " ")
}

func (b *bench) send(t *testing.T, at time.Time, ids ...string) string {
	t.Helper()
	return answer(b.Record(t.Context(), claimstest.Request(at, ids...), nil))
}

func expect(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestBatch: one result per position, each element judged for itself, one record with what is new.
func TestBatch(t *testing.T) {
	b := newBench(t)
	at := time.Now().UTC().Format(time.RFC3339)
	body := `{"signals":[
		{"signal_id":"sig_1","type":"add_to_cart","occurred_at":"` + at + `","decision_id":"dec_1","item_id":"itm_1","variant_id":"var_1","position":3,"quantity":2,"visitor":{"visitor_id":"vis_a"},"client":{"timezone":"UTC"}},
		17,
		{"signal_id":"sig_1","type":"click","occurred_at":"` + at + `","decision_id":"dec_1","item_id":"itm_9"},
		{"signal_id":"sig_2","type":"view"},
		{"signal_id":"x\u0022y","type":"click"},
		{"signal_id":"a\u0000b"},
		{"signal_id":7},
		{"signal_id":"sig_3","type":"click","occurred_at":"` + at + `","decision_id":"dec_foreign","item_id":"itm_1"},
		{"signal_id":"sig_2","type":"purchase","occurred_at":"` + at + `","decision_id":"dec_1","item_id":"itm_1","order_external_id":"7\u00ba","visitor":"a@b.example","client":{"page_url":"secret"}}]}`
	raw := []byte(body)
	charged := 0
	received := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	results, err := b.Record(t.Context(), intake.Request{ConnectionID: "con_1", StoreID: "str_1", Body: raw, ReceivedAt: received,
		Audit: signal.Audit{IP: "203.0.113.9", Crawler: true}}, func(n int) { charged += n })
	answered := answer(results, err) // written while the body is there: the results point into it
	clear(raw)                       // the buffer is the server's again
	expect(t, answered, `sig_1:accepted :rejected:invalid_signal sig_1:duplicate sig_2:rejected:invalid_type x"y:rejected:invalid_signal_id `+
		`:rejected:invalid_signal_id :rejected:invalid_signal_id sig_3:rejected:unknown_decision sig_2:accepted`)
	for i, want := range []bool{true, false, true, true, true, false, false, true, true} {
		if results[i].Index != i || results[i].HasSignalID != want {
			t.Errorf("result %d: %+v", i, results[i])
		}
	}
	if charged != 9 || len(b.records) != 1 {
		t.Fatalf("charged %d, %d records", charged, len(b.records))
	}
	r, err := signal.DecodeRecord(b.records[0])
	if err != nil {
		t.Fatal(err)
	}
	if r.ConnectionID != "con_1" || r.StoreID != "str_1" || !r.ReceivedAt.Equal(received) || !r.Audit.Crawler || r.Audit.IP != "203.0.113.9" || len(r.RecordID) != 36 || len(r.Signals) != 2 {
		t.Errorf("record %+v", r)
	}
	first, last := r.Signals[0], r.Signals[1]
	if first.Index != 0 || first.Signal.ID != "sig_1" || first.Signal.Type != signal.AddToCart || *first.Signal.Position != 3 || *first.Signal.Quantity != 2 ||
		first.Signal.Visitor.VisitorID != "vis_a" || string(first.Signal.Client) != `{"timezone":"UTC"}` {
		t.Errorf("first %+v", first)
	}
	if last.Index != 8 || last.Signal.OrderExternalID != "7º" || last.Signal.Visitor != nil || last.Signal.Client != nil {
		t.Errorf("last %+v", last)
	}
	if log := b.logged.String(); !strings.Contains(log, "field=visitor") || !strings.Contains(log, "field=client") || strings.Contains(log, "secret") || strings.Contains(log, "b.example") {
		t.Errorf("warnings: %s", log)
	}
	if n, err := testutil.GatherAndCount(b.metrics, "storefront_edge_signal_fields_discarded_total"); n != 2 || err != nil {
		t.Errorf("%d series of discarded fields, %v", n, err)
	}
}

// TestRejectedTouchesNothing: without a sound element there is nothing to claim and nothing to send.
func TestRejectedTouchesNothing(t *testing.T) {
	b := newBench(t)
	b.turn = func(context.Context) error { t.Error("Redis was asked"); return nil }
	results, err := b.Record(t.Context(), intake.Request{ConnectionID: "con_1", Body: []byte(`{"signals":[{},1]}`)}, nil)
	expect(t, answer(results, err), ":rejected:missing_signal_id :rejected:invalid_signal")
	if _, err := b.Record(t.Context(), intake.Request{Body: []byte(`{"signals":[]}`)}, func(int) { t.Error("charged") }); !fault.Is(err, fault.InvalidRequest) {
		t.Errorf("empty batch: %v", err)
	}
	if len(b.records) != 0 {
		t.Error("something was handed off")
	}
}

// TestResend: a rejected id is not remembered, an accepted one is, and so is one that another connection has.
func TestResend(t *testing.T) {
	b := newBench(t)
	now := time.Now()
	expect(t, b.send(t, time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC), "sig_1"), "sig_1:rejected:invalid_occurred_at")
	expect(t, b.send(t, now, "sig_1", "sig_2", "sig_1"), "sig_1:accepted sig_2:accepted sig_1:duplicate")
	expect(t, b.send(t, now, "sig_3", "sig_2"), "sig_3:accepted sig_2:duplicate")
	expect(t, b.send(t, now, "sig_3", "sig_2"), "sig_3:duplicate sig_2:duplicate")
	other := claimstest.Request(now, "sig_1")
	other.ConnectionID = "con_2"
	expect(t, answer(b.Record(t.Context(), other, nil)), "sig_1:accepted")
	if len(b.records) != 3 {
		t.Errorf("%d records, want 3", len(b.records))
	}
}

// TestHandOffFails: whatever is not acknowledged is a 503, and a resend is taken at once.
func TestHandOffFails(t *testing.T) {
	for _, outcome := range []stream.Outcome{stream.Refused, stream.Unknown} {
		t.Run(outcome.String(), func(t *testing.T) {
			b := newBench(t)
			b.log.Fault = func(context.Context, func()) (stream.Outcome, error) { return outcome, nil }
			_, err := b.Record(t.Context(), claimstest.Request(time.Now(), "sig_1", "sig_2"), nil)
			f := fault.From(err)
			if f.Code != fault.SignalsUnavailable || f.RetryAfter < time.Second || f.RetryAfter > 5*time.Second {
				t.Errorf("got %+v", f)
			}
			b.log.Fault = nil
			expect(t, b.send(t, time.Now(), "sig_1", "sig_2"), "sig_1:accepted sig_2:accepted")
		})
	}
}

// TestRedisFails: before the hand-off it is a 503 and nothing is sent, whether the calls took effect or not; a resend
// is taken without waiting for the lease. At the confirmation it changes nothing of the answer.
func TestRedisFails(t *testing.T) {
	for commands := range 6 { // before Take's claims, between them, after them
		b := newBench(t)
		var n atomic.Int64
		b.turn = func(context.Context) error {
			if n.Add(1) == int64(commands)+1 {
				return claimstest.ErrFault
			}
			return nil
		}
		got := b.send(t, time.Now(), "sig_1", "sig_2")
		b.Close(context.Background()) // what waits is written
		b.turn = nil
		if got == "signals_unavailable" {
			if len(b.records) != 0 {
				t.Errorf("command %d: 503, and the batch was sent", commands)
			}
			got = b.send(t, time.Now(), "sig_1", "sig_2")
		}
		expect(t, got, "sig_1:accepted sig_2:accepted")
		expect(t, b.send(t, time.Now(), "sig_1", "sig_2"), "sig_1:duplicate sig_2:duplicate")
	}
}

// TestTakenOver: an owner that finds lost does not say accepted.
func TestTakenOver(t *testing.T) {
	b := newBench(t)
	b.log.Fault = func(ctx context.Context, _ func()) (stream.Outcome, error) {
		b.log.Fault = nil
		if !b.memory.Age(claimstest.KeyOf("con_1", "sig_1"), 11*time.Second) {
			t.Error("no claim")
		}
		expect(t, b.send(t, time.Now(), "sig_1"), "sig_1:accepted") // another request meets the old claim
		return stream.Acknowledged, nil
	}
	expect(t, b.send(t, time.Now(), "sig_1"), "signals_unavailable")
	expect(t, b.send(t, time.Now(), "sig_1"), "sig_1:duplicate")
}

// TestPatience: while another attempt records a signal, a resend waits until its deadline.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		if _, err := b.memory.Connect(nil).Take(t.Context(), []intake.ClaimKey{claimstest.KeyOf("con_1", "sig_1")}, "other-1:0", make([]string, 1)); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		expect(t, b.send(t, time.Now(), "sig_1", "sig_2"), "signals_unavailable")
		if took := time.Since(start); took < 4*time.Second || took > 4100*time.Millisecond {
			t.Errorf("waited %v, want 4s", took)
		}
		time.Sleep(6 * time.Second) // the lease
		expect(t, b.send(t, time.Now(), "sig_1", "sig_2"), "sig_1:accepted sig_2:accepted")
		b.Close(context.Background())
	})
}
