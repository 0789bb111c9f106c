package stream

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrStalled ends a Consumer that was rebuilt after a partition stalled, and stalled at the same offset
// again.
var ErrStalled = errors.New("stream: consumer stalled")

// stallError names the partitions that stalled, and the offsets.
type stallError struct{ at map[topicPartition]int64 }

// Error implements error.
func (e *stallError) Error() string { return fmt.Sprintf("%v: %v", ErrStalled, e.at) }

// Unwrap implements the errors package's convention.
func (e *stallError) Unwrap() error { return ErrStalled }

// observation is the state of a partition at one moment.
type observation struct {
	end     int64 // the broker's end of the partition
	fetched int64 // the next offset to fetch
	blocked bool  // the fetcher waits for workers that are behind
}

// stallWatch finds partitions with unread records whose fetcher makes no progress although the workers keep
// up. It does no I/O: the clock and the observations come from outside.
type stallWatch struct {
	after time.Duration
	seen  map[topicPartition]struct {
		fetched int64
		since   time.Time
	}
}

func newStallWatch(after time.Duration) *stallWatch {
	w := &stallWatch{after: after}
	w.seen = make(map[topicPartition]struct {
		fetched int64
		since   time.Time
	})
	return w
}

// observe returns the stalled partitions with their offsets. A partition that is missing from all, since its
// broker does not answer, is left out.
func (w *stallWatch) observe(now time.Time, all map[topicPartition]observation) map[topicPartition]int64 {
	stalled := map[topicPartition]int64{}
	for at := range w.seen {
		if _, ok := all[at]; !ok {
			delete(w.seen, at)
		}
	}
	for at, o := range all {
		last, known := w.seen[at]
		if !known || o.blocked || o.fetched != last.fetched || o.end <= o.fetched {
			last.fetched, last.since = o.fetched, now
			w.seen[at] = last
			continue
		}
		if now.Sub(last.since) >= w.after {
			stalled[at] = o.fetched
		}
	}
	return stalled
}

// watch observes the progress of an assignment until ctx ends and returns an error when a partition stalls.
// It has a client of its own, which works while the one of the fetchers is stuck.
func (c *Consumer) watch(ctx context.Context, a *Assignment) error {
	client, closeClient := c.newClient()
	defer closeClient()
	partitions := a.Partitions()
	watch := newStallWatch(c.cfg.StallAfter)
	tick := time.NewTicker(c.cfg.CheckEvery)
	defer tick.Stop()
	for {
		ends, err := listOffsets(ctx, client, partitions)
		if err != nil && ctx.Err() == nil {
			c.cfg.Logger.Warn("the ends of the partitions cannot be read", "error", err)
		}
		if stalled := watch.observe(c.cfg.Now(), observe(a, ends)); len(stalled) > 0 {
			return &stallError{at: stalled}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// observe joins the ends of the partitions with the progress of the fetchers.
func observe(a *Assignment, ends map[topicPartition]offsetBounds) map[topicPartition]observation {
	all := map[topicPartition]observation{}
	for at, end := range ends {
		if s, ok := a.state[at]; ok {
			all[at] = observation{end: end.last, fetched: s.fetched.Load(), blocked: s.blocked.Load()}
		}
	}
	return all
}
