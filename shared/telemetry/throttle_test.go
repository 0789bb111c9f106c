package telemetry_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"storefront.internal/shared/telemetry"
)

// Of lines about the same thing so many pass in each interval, and the next one has the number of those that
// were left out.
func TestThrottle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{
			ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey {
					return slog.Attr{}
				}
				return a
			}}))
		th := telemetry.NewThrottle[string](time.Second, 2)
		write := func(key string, n int) {
			for range n {
				th.Log(log, slog.LevelWarn, key, key, slog.Int("n", 1))
			}
		}
		expect := func(want ...string) {
			t.Helper()
			got := strings.TrimSpace(out.String())
			if got != strings.Join(want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
			}
			out.Reset()
		}
		const a, b = "level=WARN msg=a n=1", "level=WARN msg=b n=1"
		write("a", 5)
		write("b", 1)
		expect(a, a, b)
		time.Sleep(time.Second - 1)
		write("a", 1)
		expect()
		time.Sleep(time.Nanosecond)
		write("a", 3)
		expect(a+" similar_not_logged=4", a)
		time.Sleep(time.Hour)
		write("a", 1)
		write("b", 1)
		expect(a+" similar_not_logged=1", b)
		time.Sleep(time.Second)
		write("a", 1)
		expect(a)
	})
}

// Whatever the order, each line is written or counted.
func TestThrottleUnderConcurrency(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		th := telemetry.NewThrottle[int](time.Second, 1)
		var mu sync.Mutex
		var written, skipped int
		write := func() {
			if n, ok := th.Allow(0); ok {
				mu.Lock()
				defer mu.Unlock()
				written, skipped = written+1, skipped+n
			}
		}
		for range 10 {
			var wg sync.WaitGroup
			for range 100 {
				wg.Go(write)
			}
			wg.Wait()
			time.Sleep(time.Second)
		}
		write()
		if written != 11 || skipped != 990 {
			t.Errorf("%d written, %d told as left out", written, skipped)
		}
	})
}
