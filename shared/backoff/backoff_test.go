package backoff

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"
)

func TestDelayDoublesUpToMaxWithJitter(t *testing.T) {
	t.Parallel()
	p := Policy{Min: time.Second, Max: time.Hour}
	for attempt, full := range map[int]time.Duration{
		-1: time.Second, 0: time.Second, 1: time.Second, 2: 2 * time.Second, 4: 8 * time.Second,
		12: 2048 * time.Second,
		13: time.Hour, math.MaxInt: time.Hour,
	} {
		if got := p.Full(attempt); got != full {
			t.Errorf("attempt %d: full delay %v, want %v", attempt, got, full)
		}
		for range 100 {
			if got := p.Delay(attempt); got < full/2 || got > full {
				t.Errorf("attempt %d: delay %v is not between %v and %v", attempt, got, full/2, full)
			}
		}
	}
	if a, b, c := p.Delay(13), p.Delay(13), p.Delay(13); a == b && b == c {
		t.Error("three delays are equal: no jitter")
	}
	if got := (Policy{}).Delay(3); got != 0 {
		t.Errorf("zero policy: %v", got)
	}
}

func TestSleepEndsWithTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		if err := Sleep(t.Context(), time.Minute); err != nil || time.Since(begun) != time.Minute {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := Sleep(ctx, time.Hour); !errors.Is(err, context.DeadlineExceeded) ||
			time.Since(begun) != time.Minute+time.Second {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		if err := Sleep(ctx, 0); err == nil {
			t.Error("no error from an ended context")
		}
	})
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "0": 0, "-3": 0, "NaN": 0, "soon": 0, " 7 ": 7 * time.Second, "2.5": 2500 * time.Millisecond,
		"86400": time.Hour, "1e300": time.Hour, "Inf": time.Hour,
		"Fri, 02 Jan 2026 03:04:35 GMT": 30 * time.Second, "Fri, 02 Jan 2026 03:00:00 GMT": 0,
		"Sat, 03 Jan 2026 03:04:35 GMT": time.Hour,
	} {
		if got := RetryAfter(value, now, time.Hour); got != want {
			t.Errorf("%q: %v, want %v", value, got, want)
		}
	}
}
