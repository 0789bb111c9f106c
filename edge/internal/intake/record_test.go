package intake_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"storefront.internal/edge/internal/claims"
	"storefront.internal/edge/internal/claims/claimstest"
	"storefront.internal/edge/internal/intake"
	"storefront.internal/edge/internal/intake/intaketest"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/signal"
	"storefront.internal/shared/stream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a Service on fakes.
type fixture struct {
	*intake.Service
	redis   *claimstest.FakeRedis
	log     *intaketest.Log
	ledger  *intaketest.Ledger
	records [][]byte
	logged  bytes.Buffer
	before  func(ctx context.Context) error // called before each command; fails calls to Redis
	metrics *prometheus.Registry
}

func (b *fixture) Produce(ctx context.Context, c ident.ConnectionID, value []byte) (stream.Outcome, error) {
	b.records = append(b.records, bytes.Clone(value))
	return b.log.Produce(ctx, c, value)
}

// ownDecisions verifies every Decision id but those that begin with dec_foreign.
type ownDecisions struct{}

func (ownDecisions) Verify(_ ident.ConnectionID, id string) bool {
	return !strings.HasPrefix(id, "dec_foreign")
}

func newFixture(t *testing.T, change ...func(*intake.Config)) *fixture {
	b := &fixture{redis: claimstest.NewFakeRedis(), log: &intaketest.Log{}, metrics: prometheus.NewRegistry()}
	b.ledger = &intaketest.Ledger{Log: b.log}
	store := b.redis.Connect(func(ctx context.Context) error {
		if b.before != nil {
			return b.before(ctx)
		}
		return nil
	})
	cfg := intake.Config{Claims: store, Producer: b, Ledger: b.ledger, Decisions: ownDecisions{},
		Metrics: intake.NewMetrics(b.metrics), Logger: slog.New(slog.NewTextHandler(&b.logged, nil))}
	for _, f := range change {
		f(&cfg)
	}
	b.Service = intake.New(cfg)
	return b
}

// answer returns the results as text, or the error's code.
func answer(results []signal.Result, err error) string {
	if err != nil {
		return string(fault.From(err).Code)
	}
	var parts []string
	for _, r := range results {
		parts = append(parts, strings.TrimSuffix(fmt.Sprintf("%s:%s:%s", r.SignalID, r.Status, r.Reason),
			":"))
	}
	return strings.Join(parts, " ")
}

func (b *fixture) send(t *testing.T, at time.Time, ids ...string) string {
	t.Helper()
	return answer(b.Record(t.Context(), intaketest.Request(at, ids...), nil))
}

func expect(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestBatch: one result per position, each element validated alone, one record with the new signals.
func TestBatch(t *testing.T) {
	b := newFixture(t)
	at := time.Now().UTC().Format(time.RFC3339)
	body := `{"signals":[
		{"signal_id":"sig_1","type":"add_to_cart","occurred_at":"` + at + `","decision_id":"dec_1",
		 "item_id":"itm_1","variant_id":"var_1","position":3,"quantity":2,
		 "visitor":{"visitor_id":"vis_a"},"client":{"timezone":"UTC"}},
		17,
		{"signal_id":"sig_1","type":"click","occurred_at":"` + at + `","decision_id":"dec_1",
		 "item_id":"itm_9"},
		{"signal_id":"sig_2","type":"view"},
		{"signal_id":"x\u0022y","type":"click"},
		{"signal_id":"a\u0000b"},
		{"signal_id":7},
		{"signal_id":"sig_3","type":"click","occurred_at":"` + at + `","decision_id":"dec_foreign",
		 "item_id":"itm_1"},
		{"signal_id":"sig_2","type":"purchase","occurred_at":"` + at + `","decision_id":"dec_1",
		 "item_id":"itm_1","order_external_id":"7\u00ba",
		 "visitor":"a@b.example","client":{"page_url":"secret"}}]}`
	raw := []byte(body)
	charged := 0
	received := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	results, err := b.Record(t.Context(), intake.Request{ConnectionID: "con_1", StoreID: "str_1", Body: raw,
		ReceivedAt: received,
		Audit:      signal.Audit{IP: "203.0.113.9", Crawler: true}}, func(n int) { charged += n })
	answered := answer(results, err) // before the body is cleared: the results point into it
	clear(raw)                       // the server uses the buffer again
	expect(t, answered, `sig_1:accepted :rejected:invalid_signal sig_1:duplicate `+
		`sig_2:rejected:invalid_type x"y:rejected:invalid_signal_id `+
		`:rejected:invalid_signal_id :rejected:invalid_signal_id `+
		`sig_3:rejected:unknown_decision sig_2:accepted`)
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
	if r.ConnectionID != "con_1" || r.StoreID != "str_1" || !r.ReceivedAt.Equal(received) ||
		!r.Audit.Crawler || r.Audit.IP != "203.0.113.9" || len(r.RecordID) != 36 || len(r.Signals) != 2 {
		t.Errorf("record %+v", r)
	}
	first, last := r.Signals[0], r.Signals[1]
	if first.Index != 0 || first.ID != "sig_1" || first.Type != signal.AddToCart ||
		*first.Position != 3 || *first.Quantity != 2 ||
		first.Visitor.VisitorID != "vis_a" || string(first.Client) != `{"timezone":"UTC"}` {
		t.Errorf("first %+v", first)
	}
	if last.Index != 8 || last.OrderExternalID != "7º" || last.Visitor != nil ||
		last.Client != nil {
		t.Errorf("last %+v", last)
	}
	if log := b.logged.String(); !strings.Contains(log, "field=visitor") ||
		!strings.Contains(log, "field=client") || strings.Contains(log, "secret") ||
		strings.Contains(log, "b.example") {
		t.Errorf("warnings: %s", log)
	}
	if n, err := testutil.GatherAndCount(b.metrics,
		"storefront_edge_signal_fields_discarded_total"); n != 2 || err != nil {
		t.Errorf("%d series of discarded fields, %v", n, err)
	}
}

// The setting decides the form of the record, and nothing else.
func TestCompactRecords(t *testing.T) {
	at := time.Now().UTC().Truncate(time.Second)
	var read [2]*signal.Record
	for i, head := range []string{`{"schema":1,`, `{"schema":2,`} {
		b := newFixture(t, func(c *intake.Config) { c.Compact = i == 1 })
		expect(t, b.send(t, at, "sig_1", "sig_2"), "sig_1:accepted sig_2:accepted")
		if !bytes.HasPrefix(b.records[0], []byte(head)) {
			t.Errorf("%s", b.records[0])
		}
		r, err := signal.DecodeRecord(b.records[0])
		if err != nil {
			t.Fatal(err)
		}
		r.RecordID, r.ReceivedAt = "", time.Time{}
		read[i] = r
	}
	if !reflect.DeepEqual(read[0], read[1]) {
		t.Errorf("got  %+v\nwant %+v", read[1], read[0])
	}
}

// TestRejectedTouchesNothing: without a valid element nothing is claimed and nothing is sent.
func TestRejectedTouchesNothing(t *testing.T) {
	b := newFixture(t)
	b.before = func(context.Context) error { t.Error("Redis was asked"); return nil }
	results, err := b.Record(t.Context(),
		intake.Request{ConnectionID: "con_1", Body: []byte(`{"signals":[{},1]}`)}, nil)
	expect(t, answer(results, err), ":rejected:missing_signal_id :rejected:invalid_signal")
	if _, err := b.Record(t.Context(), intake.Request{Body: []byte(`{"signals":[]}`)},
		func(int) { t.Error("charged") }); !fault.Is(err, fault.InvalidRequest) {
		t.Errorf("empty batch: %v", err)
	}
	if len(b.records) != 0 {
		t.Error("something was sent")
	}
}

// TestResend: an accepted id is remembered for its connection, a rejected id is not.
func TestResend(t *testing.T) {
	b := newFixture(t)
	now := time.Now()
	expect(t, b.send(t, time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC), "sig_1"),
		"sig_1:rejected:invalid_occurred_at")
	expect(t, b.send(t, now, "sig_1", "sig_2", "sig_1"), "sig_1:accepted sig_2:accepted sig_1:duplicate")
	expect(t, b.send(t, now, "sig_3", "sig_2"), "sig_3:accepted sig_2:duplicate")
	expect(t, b.send(t, now, "sig_3", "sig_2"), "sig_3:duplicate sig_2:duplicate")
	other := intaketest.Request(now, "sig_1")
	other.ConnectionID = "con_2"
	expect(t, answer(b.Record(t.Context(), other, nil)), "sig_1:accepted")
	if len(b.records) != 3 {
		t.Errorf("%d records, want 3", len(b.records))
	}
}

// TestProduceFails: without an acknowledgement the answer is 503, and a resend is accepted at once.
func TestProduceFails(t *testing.T) {
	for _, outcome := range []stream.Outcome{stream.Refused, stream.Unknown} {
		t.Run(outcome.String(), func(t *testing.T) {
			b := newFixture(t)
			b.log.Fault = func(context.Context, func()) (stream.Outcome, error) { return outcome, nil }
			_, err := b.Record(t.Context(), intaketest.Request(time.Now(), "sig_1", "sig_2"), nil)
			f := fault.From(err)
			if f.Code != fault.SignalsUnavailable || f.RetryAfter < time.Second ||
				f.RetryAfter > 5*time.Second {
				t.Errorf("got %+v", f)
			}
			b.log.Fault = nil
			expect(t, b.send(t, time.Now(), "sig_1", "sig_2"), "sig_1:accepted sig_2:accepted")
		})
	}
}

// TestRedisFails: when Redis fails before the record is sent, the answer is 503 and nothing is sent, whether
// the commands took effect or not, and a resend is accepted at once. A failure to confirm does not change the
// answer.
func TestRedisFails(t *testing.T) {
	for commands := range 6 { // before, between and after those of Claim
		b := newFixture(t)
		var n atomic.Int64
		b.before = func(context.Context) error {
			if n.Add(1) == int64(commands)+1 {
				return intaketest.ErrFault
			}
			return nil
		}
		got := b.send(t, time.Now(), "sig_1", "sig_2")
		b.Close(context.Background()) // the statuses that wait are written
		b.before = nil
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

// TestTakenOver: an attempt that finds itself lost does not answer accepted.
func TestTakenOver(t *testing.T) {
	b := newFixture(t)
	b.log.Fault = func(ctx context.Context, _ func()) (stream.Outcome, error) {
		b.log.Fault = nil
		if !b.redis.Age(intaketest.KeyOf("con_1", "sig_1"), 11*time.Second) {
			t.Error("no claim")
		}
		expect(t, b.send(t, time.Now(), "sig_1"), "sig_1:accepted") // another request finds the old claim
		return stream.Acknowledged, nil
	}
	expect(t, b.send(t, time.Now(), "sig_1"), "signals_unavailable")
	expect(t, b.send(t, time.Now(), "sig_1"), "sig_1:duplicate")
}

// TestDeadline: while another attempt holds a claim, a resend waits until its deadline.
func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFixture(t)
		if _, err := b.redis.Connect(nil).Claim(t.Context(),
			[]claims.Key{intaketest.KeyOf("con_1", "sig_1")}, "other-1:0", make([]string, 1)); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		expect(t, b.send(t, time.Now(), "sig_1", "sig_2"), "signals_unavailable")
		if took := time.Since(start); took < 4*time.Second || took > 4100*time.Millisecond {
			t.Errorf("waited %v, want 4s", took)
		}
		time.Sleep(6 * time.Second) // until claims.TakeoverAfter
		expect(t, b.send(t, time.Now(), "sig_1", "sig_2"), "sig_1:accepted sig_2:accepted")
		b.Close(context.Background())
	})
}

// A storefront that sends malformed fields at the rate of its requests is logged once a second, with the
// number of lines that were left out.
func TestDiscardedFieldsAreLoggedSparingly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		awaitValidTime()
		b := newFixture(t)
		n := 0
		send := func(times int) {
			for range times {
				n++
				body := fmt.Sprintf(`{"signals":[{"signal_id":"sig_%d","type":"impression","occurred_at":%q,`+
					`"decision_id":"dec_1","client":{"timezone":"Mars"}}]}`, n,
					time.Now().UTC().Format(time.RFC3339))
				results, err := b.Record(t.Context(), intake.Request{ConnectionID: "con_1", StoreID: "str_1",
					Body: []byte(body)}, nil)
				expect(t, answer(results, err), fmt.Sprintf("sig_%d:accepted", n))
			}
		}
		send(100)
		time.Sleep(time.Second)
		send(1)
		lines := strings.Split(strings.TrimSpace(b.logged.String()), "\n")
		if len(lines) != 2 || !strings.Contains(lines[1], "field=client") ||
			!strings.Contains(lines[1], "similar_not_logged=99") {
			t.Errorf("logged:\n%s", b.logged.String())
		}
		b.Close(t.Context())
	})
}
