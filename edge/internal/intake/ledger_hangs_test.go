package intake_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"storefront.internal/edge/internal/claims/claimstest"
	"storefront.internal/edge/internal/intake"
	"storefront.internal/edge/internal/intake/intaketest"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
)

// hangingLedger knows no signal; while it hangs, its look-ups block until their context ends.
type hangingLedger struct {
	hangs atomic.Bool
	asked atomic.Int64
}

func (l *hangingLedger) lookUp(ctx context.Context) error {
	l.asked.Add(1)
	if l.hangs.Load() {
		<-ctx.Done()
	}
	return ctx.Err()
}

func (l *hangingLedger) Known(ctx context.Context, _ ident.ConnectionID,
	ids []ident.SignalID) ([]bool, error) {
	return make([]bool, len(ids)), l.lookUp(ctx)
}

func (l *hangingLedger) RecentlyStored(ctx context.Context, _ time.Duration) (bool, error) {
	return true, l.lookUp(ctx)
}

// hangingFixture is a Service whose ledger hangs.
type hangingFixture struct {
	*intake.Service
	ledger *hangingLedger
	redis  *claimstest.FakeRedis
	sent   atomic.Int64
}

// playHanging runs f with a Redis that knows its claims, in a bubble with its own clock.
func playHanging(t *testing.T, f func(t *testing.T, b *hangingFixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		awaitValidTime()
		b := &hangingFixture{ledger: &hangingLedger{}, redis: claimstest.NewFakeRedis()}
		b.ledger.hangs.Store(true)
		b.Service = intake.New(intake.Config{Claims: b.redis.Connect(nil), Producer: &intaketest.Log{},
			Ledger: b.ledger, Decisions: intaketest.AnyDecision{},
			Metrics: intake.NewMetrics(prometheus.NewRegistry()), Logger: slog.New(slog.DiscardHandler)})
		f(t, b)
		b.Close(t.Context())
		synctest.Wait()
	})
}

// awaitValidTime moves the clock of a bubble, which begins in 2000, to where occurred_at is valid.
func awaitValidTime() { time.Sleep(time.Until(time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC))) }

// send sends n batches at once, each with one new signal of that age, and expects the answer "accepted" or an
// error's code. It returns the longest time that one of them took.
func (b *hangingFixture) send(t *testing.T, n int, age time.Duration, want string) time.Duration {
	t.Helper()
	var wg sync.WaitGroup
	took := make([]time.Duration, n)
	for i := range n {
		id := fmt.Sprint("sig_", b.sent.Add(1))
		wg.Go(func() {
			began := time.Now()
			results, err := b.Record(t.Context(), intaketest.Request(began.Add(-age), id), nil)
			took[i] = time.Since(began)
			got := answer(results, err)
			if got != want && got != id+":"+want {
				t.Errorf("got %s, want %s", got, want)
			}
			if f := fault.From(err); err != nil && f.RetryAfter < time.Second {
				t.Errorf("Retry-After %s", f.RetryAfter)
			}
		})
	}
	wg.Wait()
	longest := took[0]
	for _, d := range took {
		longest = max(longest, d)
	}
	return longest
}

func wantTook(t *testing.T, what string, got, want time.Duration) {
	t.Helper()
	if got != want {
		t.Errorf("%s took %s, want %s", what, got, want)
	}
}

const lookupTimeout = 300 * time.Millisecond

// A ledger that hangs delays old signals by its timeout until that is known, and then one batch in each
// second. None fails.
func TestHangingLedgerNeverFailsIntake(t *testing.T) {
	playHanging(t, func(t *testing.T, b *hangingFixture) {
		wantTook(t, "a recent signal", b.send(t, 1, time.Minute, "accepted"), 0)
		wantTook(t, "the first batches", b.send(t, 200, 50*time.Minute, "accepted"), lookupTimeout)
		asked := b.ledger.asked.Load()
		wantTook(t, "a batch once it is known", b.send(t, 200, 50*time.Minute, "accepted"), 0)
		if n := b.ledger.asked.Load() - asked; n != 0 {
			t.Errorf("the ledger was asked %d times more", n)
		}
		time.Sleep(time.Second)
		asked = b.ledger.asked.Load()
		wantTook(t, "the probe", b.send(t, 200, 50*time.Minute, "accepted"), lookupTimeout)
		if n := b.ledger.asked.Load() - asked; n != 1 {
			t.Errorf("%d probes at once", n)
		}
		b.ledger.hangs.Store(false)
		time.Sleep(time.Second)
		b.send(t, 1, 50*time.Minute, "accepted")
		asked = b.ledger.asked.Load()
		b.send(t, 10, 50*time.Minute, "accepted")
		if n := b.ledger.asked.Load() - asked; n != 10 {
			t.Errorf("of 10 batches after the ledger came back %d asked it", n)
		}
	})
}

// While Redis lacks its claims the ledger is needed: without an answer the batch fails, after the timeout and
// then at once.
func TestHangingLedgerAndColdRedis(t *testing.T) {
	playHanging(t, func(t *testing.T, b *hangingFixture) {
		const unavailable = "signals_unavailable"
		b.redis.FlushAll()
		for range 2 { // one after the other; the first asks twice, and waits for both look-ups together
			wantTook(t, "a batch", b.send(t, 1, 0, unavailable), lookupTimeout)
		}
		wantTook(t, "a batch once it is known", b.send(t, 200, 0, unavailable), 0)
		b.ledger.hangs.Store(false)
		time.Sleep(time.Second)
		wantTook(t, "a batch after the ledger came back", b.send(t, 1, 0, "accepted"), 0)
	})
}
