package upkeep

import (
	"context"
	"errors"
	"log/slog"
	"slices"
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
	days     map[Table]int // old ones
	inUse    Table         // none of its days can be dropped
	before   map[Table]time.Time
	pages    []int64
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

func (d *diary) DropPartition(_ context.Context, table Table, before time.Time) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if table == d.inUse {
		return false, errors.New("in use")
	}
	if d.before == nil {
		d.before = map[Table]time.Time{}
	}
	d.before[table] = before
	d.days[table]--
	return d.days[table] >= 0, nil
}

// Three pages, of which the second one fails once.
func (d *diary) PurgeCartLines(_ context.Context, _ time.Time,
	page int64) (deleted int, next int64, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pages = append(d.pages, page)
	if len(d.pages) == 2 {
		return 0, 0, errors.New("away")
	}
	return 5, (page + 1) % 3, nil
}

func (d *diary) DefaultPartitionRows(context.Context) (int, error) { return 0, nil }

func (d *diary) Parked(context.Context) (int, error) { return 3, nil }

func (d *diary) BackfillForeignItems(context.Context) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.marked++
	return 0, nil
}

func run(t *testing.T, d *diary, retention, audit time.Duration) *Upkeep {
	d.days = map[Table]int{Signals: 2, Audit: 3, Decisions: 1}
	u := New(
		Config{
			Store:          d,
			Logger:         slog.New(slog.DiscardHandler),
			Registerer:     prometheus.NewRegistry(),
			DaysAhead:      7,
			Retention:      retention,
			AuditRetention: audit,
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
		u := run(t, d, 0, 0)
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
		if d.ensured != 5 || len(d.before) != 0 || len(d.pages) != 0 {
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
	const day = 24 * time.Hour
	synctest.Test(t, func(t *testing.T) {
		d, began := &diary{}, time.Now()
		u := run(t, d, 30*day, 10*day)
		synctest.Wait()
		if n := testutil.ToFloat64(u.dropped); n != 6 {
			t.Errorf("%v days are dropped, want 6", n)
		}
		for table, age := range map[Table]time.Duration{Signals: 30 * day, Decisions: 30 * day,
			Audit: 10 * day} {
			if !d.before[table].Equal(began.Add(-age)) {
				t.Errorf("%s: dropped before %v", table, d.before[table])
			}
		}
	})
	synctest.Test(t, func(t *testing.T) { // the audit alone
		d := &diary{}
		run(t, d, 0, 10*day)
		synctest.Wait()
		if len(d.before) != 1 || d.before[Audit].IsZero() || len(d.pages) != 0 {
			t.Errorf("dropped %v, pages %v", d.before, d.pages)
		}
	})
}

func TestADayInUseIsDroppedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &diary{inUse: Signals}
		u := run(t, d, time.Hour, time.Hour)
		synctest.Wait()
		if n := testutil.ToFloat64(u.dropped); n != 4 {
			t.Errorf("%v days are dropped beside one in use, want 4", n)
		}
		d.mu.Lock()
		d.inUse = ""
		d.mu.Unlock()
		time.Sleep(retentionRetryAfter + time.Second)
		synctest.Wait()
		if n := testutil.ToFloat64(u.dropped); n != 6 {
			t.Errorf("%v days are dropped, want 6", n)
		}
	})
}

func TestCartLinesArePurgedPageByPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &diary{}
		u := run(t, d, time.Hour, 0)
		time.Sleep(retentionRetryAfter + time.Minute)
		synctest.Wait()
		if want := []int64{0, 1, 0, 1, 2}; !slices.Equal(d.pages, want) {
			t.Errorf("pages %v, want %v", d.pages, want)
		}
		if n := testutil.ToFloat64(u.purgedLines); n != 20 {
			t.Errorf("%v lines are counted, want 20", n)
		}
	})
}
