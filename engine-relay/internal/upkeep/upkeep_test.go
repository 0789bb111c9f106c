package upkeep

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// diary is a store that writes down what is asked of it and fails the first times.
type diary struct {
	mu       sync.Mutex
	failures int
	ensured  int
	marked   int
	before   []time.Time
}

func (d *diary) EnsurePartitions(_ context.Context, days int) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ensured++
	if d.ensured <= d.failures {
		return 0, errors.New("away")
	}
	return days, nil
}

func (d *diary) DropPartitions(_ context.Context, before time.Time) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.before = append(d.before, before)
	return 0, nil
}

func (d *diary) DefaultPartitionRows(context.Context) (int, error) { return 0, nil }

func (d *diary) Parked(context.Context) (int, error) { return 3, nil }

func (d *diary) BackfillForeignItems(context.Context) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.marked++
	return 0, nil
}

func run(t *testing.T, d *diary, retention time.Duration) *Upkeep {
	u := New(
		Config{
			Store:      d,
			Logger:     slog.New(slog.DiscardHandler),
			Registerer: prometheus.NewRegistry(),
			DaysAhead:  7,
			Retention:  retention,
		},
	)
	go func() {
		if err := u.Run(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	return u
}

func TestPartitionsAreCreatedAtOnceAndHourly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &diary{failures: 2}
		u := run(t, d, 0)
		time.Sleep(retryAfter + time.Second)
		select {
		case <-u.Ready():
			t.Error("ready before there are partitions")
		default:
		}
		if err := u.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "away") {
			t.Errorf("the check does not name the cause: %v", err)
		}
		time.Sleep(retryAfter)
		<-u.Ready()
		if err := u.Check(t.Context()); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * partitionsEvery)
		synctest.Wait()
		if d.ensured != 5 || len(d.before) != 0 {
			t.Errorf("ensured %d times, dropped %d times", d.ensured, len(d.before))
		}
		if want := 1 + int((2*partitionsEvery+2*retryAfter)/marksEvery); d.marked < want ||
			d.marked > want+1 {
			t.Errorf("marked %d times, want %d", d.marked, want)
		}
		if n := testutil.ToFloat64(u.parked); n != 3 {
			t.Errorf("%v parked are shown, want 3", n)
		}
	})
}

func TestRetention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &diary{}
		began := time.Now()
		run(t, d, 30*24*time.Hour)
		synctest.Wait()
		if len(d.before) != 1 || !d.before[0].Equal(began.Add(-30*24*time.Hour)) {
			t.Errorf("dropped before %v", d.before)
		}
	})
}
