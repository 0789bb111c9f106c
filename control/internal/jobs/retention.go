package jobs

import (
	"context"
	"errors"
	"time"

	"github.com/riverqueue/river"
)

// Archive is the partitioned archive of observations and webhook events.
type Archive interface {
	// EnsurePartitions creates the partitions of the coming days and returns how many whole days ahead exist.
	EnsurePartitions(ctx context.Context, days int) (int, error)
	// DropPartitions drops the days before the given one and returns how many it dropped. inUse: one of them
	// is read by a transaction and has to be dropped later.
	DropPartitions(ctx context.Context, before time.Time) (dropped int, inUse bool, err error)
}

// Purger deletes old rows, at most some in a transaction, and returns how many it deleted.
type Purger func(ctx context.Context, before time.Time, most int) (int, error)

// Retention is how long rows are kept; 0 keeps them for ever.
type Retention struct{ Archive, Dead, BootstrapRuns time.Duration }

// daysAhead is for how many days partitions are created in advance.
const daysAhead = 7

// purgePage is how many rows are deleted in a transaction.
const purgePage = 1000

// inUseAgain is the time until a partition that is read is tried again.
const inUseAgain = 5 * time.Minute

// maintainArchive does each task even if another one fails. What a cut-off leaves is done by the next job.
func (c *Config) maintainArchive(ctx context.Context, _ archiveUpkeep) error {
	ahead, err := c.Archive.EnsurePartitions(ctx, daysAhead)
	if err == nil && ahead < daysAhead {
		c.Logger.Warn("the archive lacks partitions of coming days", "days_ahead", ahead)
	}
	inUse, dropped := c.dropArchive(ctx)
	err = errors.Join(err, dropped,
		c.purge(ctx, "dead letters", c.Retention.Dead, c.PurgeDead),
		c.purge(ctx, "bootstrap runs", c.Retention.BootstrapRuns, c.PurgeRuns))
	if err == nil && inUse {
		return river.JobSnooze(inUseAgain)
	}
	return err
}

func (c *Config) dropArchive(ctx context.Context) (inUse bool, err error) {
	if c.Retention.Archive == 0 {
		return false, nil
	}
	dropped, inUse, err := c.Archive.DropPartitions(ctx, time.Now().Add(-c.Retention.Archive))
	if dropped > 0 {
		c.Logger.Info("old partitions of the archive were dropped", "partitions", dropped)
	}
	if inUse {
		c.Logger.Warn("an old partition of the archive is in use and cannot be dropped yet")
	}
	return inUse, err
}

func (c *Config) purge(ctx context.Context, rows string, retention time.Duration, purge Purger) error {
	if retention == 0 {
		return nil
	}
	total, before := 0, time.Now().Add(-retention)
	for {
		n, err := purge(ctx, before, purgePage)
		total += n
		if err != nil || n == 0 {
			if total > 0 {
				c.Logger.Info("old rows were deleted", "rows", rows, "count", total)
			}
			return err
		}
	}
}
