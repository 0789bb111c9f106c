package kafka

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"storefront.internal/shared/signal"
	"storefront.internal/shared/stream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// producer is a fake that holds records until hold is closed.
type producer struct {
	mu      sync.Mutex
	values  [][]byte
	hold    chan struct{}
	outcome stream.Outcome
	err     error
	fails   int // how often it fails; 0: always
}

func (p *producer) Produce(ctx context.Context, value []byte) (stream.Outcome, error) {
	if p.hold != nil {
		select {
		case <-p.hold:
		case <-ctx.Done():
			return stream.Unknown, ctx.Err()
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.values = append(p.values, value)
	if p.fails > 0 && len(p.values) > p.fails {
		return stream.Acknowledged, nil
	}
	return p.outcome, p.err
}

func decision(id string) *signal.Decision {
	return &signal.Decision{DecisionID: "dec_1", ConnectionID: "con_1", StoreID: "str_1", Placement: id,
		Source: "engine", ServedAt: time.Unix(1, 0)}
}

func newDecisions(p *producer) *Decisions {
	return NewDecisions(p, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
}

func (d *Decisions) counted(outcome string) float64 {
	return testutil.ToFloat64(d.outcomes.WithLabelValues(outcome))
}

func TestDecisionsAreProduced(t *testing.T) {
	t.Parallel()
	p := &producer{outcome: stream.Acknowledged}
	d := newDecisions(p)
	for range 10 {
		d.Record(decision("home"))
	}
	if err := d.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(p.values) != 10 || d.counted("acknowledged") != 10 {
		t.Fatalf("%d produced, %v counted", len(p.values), d.counted("acknowledged"))
	}
	got, err := signal.DecodeDecision(p.values[0])
	if err != nil || got.Placement != "home" || got.DecisionID != "dec_1" {
		t.Errorf("%+v, %v", got, err)
	}
	d.Record(decision("late"))
	if d.counted("dropped") != 1 {
		t.Error("a Decision after Close was not counted")
	}
}

// A Decision that never arrives is dropped and counted: after produceTimeout, or as soon as the recorder is
// closed.
func TestFailuresAreCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &producer{outcome: stream.Refused, err: errors.New("x")}
		d := newDecisions(p)
		d.Record(decision("home"))
		time.Sleep(produceTimeout)
		synctest.Wait()
		if d.counted("refused") != 1 || len(p.values) < 5 {
			t.Errorf("%v counted after %d attempts", d.counted("refused"), len(p.values))
		}
		d.Record(decision("home"))
		synctest.Wait()
		began := time.Now()
		if err := d.Close(t.Context()); err != nil || time.Since(began) != 0 || d.counted("refused") != 2 {
			t.Errorf("close: %v after %v, %v counted", err, time.Since(began), d.counted("refused"))
		}
	})
}

// A Decision that Kafka refuses or does not acknowledge is produced again: none is lost while a topic is
// being created.
func TestFailuresAreTriedAgain(t *testing.T) {
	t.Parallel()
	for _, outcome := range []stream.Outcome{stream.Refused, stream.Unknown} {
		synctest.Test(t, func(t *testing.T) {
			p := &producer{outcome: outcome, err: errors.New("x"), fails: 3}
			d := newDecisions(p)
			d.Record(decision("home"))
			time.Sleep(time.Second)
			synctest.Wait()
			if d.counted("acknowledged") != 1 || len(p.values) != 4 || d.counted(outcome.String()) != 0 {
				t.Errorf("%v: %d attempts, %v acknowledged", outcome, len(p.values),
					d.counted("acknowledged"))
			}
			if err := d.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// A Kafka that hangs does not block Record, and gets a bounded number of Decisions.
func TestRecordNeverBlocks(t *testing.T) {
	t.Parallel()
	p := &producer{hold: make(chan struct{}), outcome: stream.Acknowledged}
	d := newDecisions(p)
	for range maxInFlight + 5 {
		d.Record(decision("home"))
	}
	if d.counted("dropped") != 5 {
		t.Errorf("%v dropped, want 5", d.counted("dropped"))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := d.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("close: %v", err)
	}
	if d.counted("unknown") != maxInFlight {
		t.Errorf("%v unknown", d.counted("unknown"))
	}
}
