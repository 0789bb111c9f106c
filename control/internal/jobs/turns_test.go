package jobs

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riverqueue/river"

	"storefront.internal/shared/ident"
)

// TestSlowShopLeavesWorkers runs a hundred jobs of a shop that takes ten seconds for each on sixteen workers,
// with a job of another shop behind them.
func TestSlowShopLeavesWorkers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const workers, slow, most = 16, 100, 4
		type job struct {
			shop ident.ConnectionID
			due  time.Time
		}
		turns := newTurns(most)
		queue := make([]job, 0, slow+1)
		for range slow {
			queue = append(queue, job{"con_slow", time.Now()})
		}
		queue = append(queue, job{"con_other", time.Now()})
		began, other := time.Now(), time.Duration(-1)
		free, returned := workers, make(chan job, workers)
		var mu sync.Mutex // of running and peak
		running, peak, attempts, done := 0, 0, 0, 0
		count := func(n int) {
			mu.Lock()
			defer mu.Unlock()
			running += n
			peak = max(peak, running)
		}
		for done < slow+1 {
			for i := 0; i < len(queue) && free > 0; i++ {
				j := queue[i]
				if j.due.After(time.Now()) {
					continue
				}
				queue = append(queue[:i], queue[i+1:]...)
				i--
				free--
				attempts++
				go func() {
					var snoozed *river.JobSnoozeError
					err := turns.run(j.shop, func() error {
						if j.shop == "con_other" {
							other = time.Since(began)
							return nil
						}
						count(1)
						defer count(-1)
						time.Sleep(10 * time.Second)
						return nil
					})
					j.due = time.Time{}
					if errors.As(err, &snoozed) {
						j.due = time.Now().Add(snoozed.Duration)
					}
					returned <- j
				}()
				synctest.Wait()
			}
			select {
			case j := <-returned:
				free++
				if j.due.IsZero() {
					done++
				} else {
					queue = append(queue, j)
				}
			case <-time.After(100 * time.Millisecond):
			}
		}
		if other != 0 || peak != most {
			t.Errorf("the other shop waited for %v; %d jobs of the slow one ran at a time", other, peak)
		}
		if took, least := time.Since(began), slow*10*time.Second/most; took > least*3/2 {
			t.Errorf("the slow shop was done after %v, not %v", took, least)
		}
		if attempts > 8*slow {
			t.Errorf("%d attempts for %d jobs", attempts, slow)
		}
		if len(turns.of) > 1 {
			t.Errorf("%d shops are remembered", len(turns.of))
		}
	})
}
