package stream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"
)

// ErrStalled ends a Consumer whose partition stood still, was rebuilt, and stood still at the same offset again.
var ErrStalled = errors.New("stream: consumer stalled")

// stallError names what stood still, and where.
type stallError struct{ at map[place]int64 }

// Error implements error.
func (e *stallError) Error() string { return fmt.Sprintf("%v: %v", ErrStalled, e.at) }

// Unwrap implements the errors package's convention.
func (e *stallError) Unwrap() error { return ErrStalled }

// observation is a partition at one moment.
type observation struct {
	end     int64 // the broker's
	fetched int64 // ours
	blocked bool  // our workers are behind; the fetcher is well
}

// stallWatch finds partitions that have more to read, nobody to wait for, and do not move. It is pure: the clock and the observations come from outside.
type stallWatch struct {
	after time.Duration
	seen  map[place]struct {
		fetched int64
		since   time.Time
	}
}

func newStallWatch(after time.Duration) *stallWatch {
	w := &stallWatch{after: after}
	w.seen = make(map[place]struct {
		fetched int64
		since   time.Time
	})
	return w
}

// observe returns the partitions that stood still for too long, with the offset where they stand. A partition that is missing from now is not judged: its broker does not answer.
func (w *stallWatch) observe(now time.Time, all map[place]observation) map[place]int64 {
	stalled := map[place]int64{}
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

// watch looks how far an assignment comes and ends it when it stalls. It has a client of its own, so that it sees what a stuck one does not.
func (c *Consumer) watch(ctx context.Context, a *Assignment) error {
	client, closeClient := c.newClient()
	defer closeClient()
	request := map[string][]kafka.OffsetRequest{}
	for _, at := range a.places {
		request[at.topic] = append(request[at.topic], kafka.LastOffsetOf(at.partition))
	}
	watch := newStallWatch(c.cfg.StallAfter)
	tick := time.NewTicker(c.cfg.CheckEvery)
	defer tick.Stop()
	for {
		ends, err := listOffsets(ctx, client, request)
		if err != nil && ctx.Err() == nil {
			c.cfg.Logger.Warn("ends of partitions unknown", "error", err)
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

// observe joins the broker's ends with our progress.
func observe(a *Assignment, ends map[place]int64) map[place]observation {
	all := map[place]observation{}
	for at, end := range ends {
		s, ok := a.state[at]
		if !ok {
			continue
		}
		all[at] = observation{end: end, fetched: s.fetched.Load(), blocked: s.blocked.Load()}
	}
	return all
}
