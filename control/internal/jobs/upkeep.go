package jobs

import (
	"context"
	"log/slog"
	"time"

	"github.com/riverqueue/river"
)

// Archive is what upkeep keeps up.
type Archive interface {
	// EnsurePartitions makes the coming days and returns how many whole days ahead there are.
	EnsurePartitions(ctx context.Context, days int) (int, error)
	// DropPartitions ends the days before the given one and returns how many went.
	DropPartitions(ctx context.Context, before time.Time) (int, error)
}

// The archive's days are made a week ahead, every hour, by one process at a time.
const (
	upkeepEvery = time.Hour
	daysAhead   = 7
)

type upkeep struct{}

// Kind implements river.JobArgs.
func (upkeep) Kind() string { return "archive_upkeep" }

// InsertOpts implements river.JobArgsWithInsertOpts. The next one comes by itself.
func (upkeep) InsertOpts() river.InsertOpts { return river.InsertOpts{MaxAttempts: 5} }

// periodic is the upkeep of the archive, at the start too.
func periodic() []*river.PeriodicJob {
	return []*river.PeriodicJob{river.NewPeriodicJob(river.PeriodicInterval(upkeepEvery),
		func() (river.JobArgs, *river.InsertOpts) { return upkeep{}, nil }, &river.PeriodicJobOpts{RunOnStart: true})}
}

type upkeepWorker struct {
	river.WorkerDefaults[upkeep]
	archive   Archive
	retention time.Duration // 0 keeps everything
	logger    *slog.Logger
}

// Work implements river.Worker.
func (w *upkeepWorker) Work(ctx context.Context, _ *river.Job[upkeep]) error {
	ahead, err := w.archive.EnsurePartitions(ctx, daysAhead)
	if err != nil {
		return err
	}
	if ahead < daysAhead {
		w.logger.Warn("days of the archive are missing", "ahead", ahead)
	}
	if w.retention == 0 {
		return nil
	}
	dropped, err := w.archive.DropPartitions(ctx, time.Now().Add(-w.retention))
	if dropped > 0 {
		w.logger.Info("days of the archive were dropped", "days", dropped)
	}
	return err
}
