package jobs

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/riverqueue/river/rivertype"
)

// days is an Archive of some old days, the last of which may be in use.
type days struct {
	noArchive
	old   int
	inUse bool
}

func (d *days) DropPartitions(context.Context, time.Time) (int, bool, error) {
	n := d.old
	d.old = 0
	return n, d.inUse, nil
}

// rows is a Purger of some old rows that fails once.
type rows struct{ old, most, fails, calls int }

func (r *rows) purge(_ context.Context, _ time.Time, most int) (int, error) {
	r.calls++
	if r.calls == r.fails {
		return 0, errors.New("away")
	}
	n := min(most, r.old)
	r.old, r.most = r.old-n, most
	return n, nil
}

func TestRetentionGoesOnAfterAFailure(t *testing.T) {
	t.Parallel()
	archive, dead, runs := &days{old: 3, inUse: true}, &rows{old: 2500, fails: 3}, &rows{old: 10}
	c := &Config{Archive: archive, Logger: slog.New(slog.DiscardHandler), PurgeDead: dead.purge,
		PurgeRuns: runs.purge,
		Retention: Retention{Archive: time.Hour, Dead: time.Hour, BootstrapRuns: time.Hour}}
	if err := c.maintainArchive(t.Context(), archiveUpkeep{}); err == nil {
		t.Error("the failure is not told")
	}
	if archive.old != 0 || runs.old != 0 || dead.old != 500 || dead.most != purgePage {
		t.Errorf("%+v %+v %+v", archive, runs, dead)
	}
	var snooze *rivertype.JobSnoozeError
	if err := c.maintainArchive(t.Context(), archiveUpkeep{}); !errors.As(err, &snooze) || dead.old != 0 {
		t.Errorf("%v, %+v", err, dead)
	}
	archive.inUse = false
	if err := c.maintainArchive(t.Context(), archiveUpkeep{}); err != nil {
		t.Error(err)
	}
	c.Retention = Retention{}
	archive.old, dead.old = 1, 1
	if err := c.maintainArchive(t.Context(),
		archiveUpkeep{}); err != nil || archive.old != 1 || dead.old != 1 {
		t.Errorf("without a retention: %v, %+v, %+v", err, archive, dead)
	}
}
