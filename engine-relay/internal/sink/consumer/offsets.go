package consumer

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"storefront.internal/engine-relay/internal/sink"
	"storefront.internal/shared/backoff"
	"storefront.internal/shared/stream"
)

// positionsInterval is how often PostgreSQL's positions are compared although nothing is stored.
const positionsInterval = 5 * time.Second

// Begin lets the partitions of a new assignment begin where PostgreSQL is, if that is behind the group. It
// tries again until PostgreSQL answers or ctx ends.
func (c *Consumer) Begin(ctx context.Context, b *stream.Beginning) error {
	slices.SortFunc(b.Starts, func(x, y stream.Start) int {
		return cmp.Or(strings.Compare(x.Topic, y.Topic), cmp.Compare(x.Partition, y.Partition))
	})
	partitions := make([]sink.Resumption, len(b.Starts))
	for i, s := range b.Starts {
		partitions[i] = sink.Resumption{Partition: sink.Partition{Topic: s.Topic, ID: s.Partition},
			Committed: s.Committed, Marked: s.Marked, First: s.First}
	}
	policy := backoff.Policy{Min: 50 * time.Millisecond, Max: 5 * time.Second}
	for attempt := 1; ; attempt++ {
		starts, err := c.cfg.Offsets.Begin(ctx, b.AssignmentID, b.ClusterID, partitions)
		if err == nil {
			c.begun(b.Starts, starts)
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		c.cfg.Logger.Warn("the stored offsets cannot be read from PostgreSQL, trying again", "error", err)
		if err := backoff.Sleep(ctx, policy.Delay(attempt)); err != nil {
			return err
		}
	}
}

// begun sets the starts, and reports where PostgreSQL is behind the group.
func (c *Consumer) begun(all []stream.Start, starts []int64) {
	again := make(map[sink.Partition]int64)
	for i := range all {
		s := &all[i]
		s.Offset = starts[i]
		if s.Committed > s.Offset {
			again[sink.Partition{Topic: s.Topic, ID: s.Partition}] = s.Committed
			c.metrics.reread.WithLabelValues(s.Topic).Add(float64(s.Committed - s.Offset))
			c.cfg.Logger.Error("PostgreSQL is behind the consumer group; what it lacks is read again",
				"topic", s.Topic, "partition", s.Partition,
				"group_offset", s.Committed, "stored_offset", s.Offset, "first_offset", s.First)
		}
	}
	c.again.Store(&again)
}

// positions returns how far the partitions are done.
func (r *generationRun) positions() map[sink.Partition]int64 {
	at := make(map[sink.Partition]int64)
	r.generation.Positions(func(topic string, partition int, position int64) {
		at[sink.Partition{Topic: topic, ID: partition}] = position
	})
	return at
}

// checkPositions finds a PostgreSQL that was restored while nothing is being stored.
func (r *generationRun) checkPositions(ctx context.Context) {
	least := r.positions()
	r.showBehind(least)
	ctx, cancel := context.WithTimeout(ctx, positionsInterval)
	defer cancel()
	positions, err := r.cfg.Offsets.Positions(ctx, r.generation.ID())
	if err == nil {
		err = sink.CheckPositions(least, positions)
	}
	if errors.Is(err, sink.ErrBehind) { // other errors are the writer's to report
		r.fail(err)
	}
}

// showBehind shows how many of the records that are read again are not stored yet.
func (r *generationRun) showBehind(positions map[sink.Partition]int64) {
	left := map[string]int64{r.cfg.Signals: 0, r.cfg.Decisions: 0}
	if again := r.again.Load(); again != nil {
		for p, end := range *again {
			left[p.Topic] += max(0, end-positions[p])
		}
	}
	for topic, n := range left {
		r.metrics.behind.WithLabelValues(topic).Set(float64(n))
	}
}
