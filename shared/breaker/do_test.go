package breaker_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"storefront.internal/shared/backoff"
	"storefront.internal/shared/breaker"
)

func TestDoOpensAfterTimeoutsOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const limit, open = 300 * time.Millisecond, time.Second
		b := breaker.New(breaker.Config{Failures: 2, Open: backoff.Policy{Min: open, Max: open}})
		errRefused := errors.New("refused")
		hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		refuse := func(context.Context) error { return errRefused }
		answer := func(context.Context) error { return nil }
		do := func(call func(context.Context) error, want error, took time.Duration) {
			t.Helper()
			began := time.Now()
			if err := b.Do(t.Context(), limit, call); !errors.Is(err, want) || time.Since(began) != took {
				t.Errorf("%v after %s, want %v after %s", err, time.Since(began), want, took)
			}
		}
		for range 10 { // it costs no time
			do(refuse, errRefused, 0)
		}
		do(hang, context.DeadlineExceeded, limit)
		do(answer, nil, 0)
		do(hang, context.DeadlineExceeded, limit)
		do(hang, context.DeadlineExceeded, limit)
		do(answer, breaker.ErrOpen, 0)
		time.Sleep(open)
		do(refuse, errRefused, 0) // a probe
		do(answer, breaker.ErrOpen, 0)
		time.Sleep(open)
		do(answer, nil, 0)
		do(answer, nil, 0)
	})
}

// A caller that gives up says nothing of what it called, and its probe is free again.
func TestDoWithAContextThatEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New(breaker.Config{Open: backoff.Policy{Min: time.Second, Max: time.Second}})
		giveUp := func() {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			err := b.Do(ctx, time.Minute, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error %v", err)
			}
		}
		giveUp()
		if s := b.State(); s != breaker.Closed {
			t.Errorf("state %d", s)
		}
		b.Failure(0)
		time.Sleep(time.Second)
		giveUp()
		if err := b.Do(t.Context(), time.Minute, func(context.Context) error { return nil }); err != nil {
			t.Errorf("the probe was not given back: %v", err)
		}
	})
}
