package consume

import (
	"sync"
	"time"
)

// place names a partition.
type place struct {
	topic     string
	partition int
}

// span is a run of records of one partition that was taken and is to be stored.
type span struct {
	place  place
	next   int64     // the offset after it
	oldest time.Time // of its first record
	done   bool
}

// offsets knows what was taken and what of it is done, and so how far each partition may be committed: two workers
// finish in any order, and an offset must not pass what the other still holds.
type offsets struct {
	mu    sync.Mutex
	open  map[place][]*span // in the order of the partition
	ready map[place]int64   // may be committed, and is not yet
}

func newOffsets() *offsets {
	return &offsets{open: make(map[place][]*span), ready: make(map[place]int64)}
}

// take notes a run of records; runs of a partition are taken in its order.
func (o *offsets) take(p place, next int64, oldest time.Time) *span {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := &span{place: p, next: next, oldest: oldest}
	o.open[p] = append(o.open[p], s)
	return s
}

// finish notes that the spans are stored.
func (o *offsets) finish(spans []*span) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, s := range spans {
		s.done = true
	}
	for _, s := range spans {
		o.advance(s.place)
	}
}

func (o *offsets) advance(p place) {
	open := o.open[p]
	for len(open) > 0 && open[0].done {
		o.ready[p] = open[0].next
		open = open[1:]
	}
	if len(open) == 0 {
		delete(o.open, p)
		return
	}
	o.open[p] = open
}

// due returns what may be committed and is not, nil when nothing is.
func (o *offsets) due() map[string]map[int]int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	var due map[string]map[int]int64
	for p, next := range o.ready {
		if due == nil {
			due = make(map[string]map[int]int64)
		}
		if due[p.topic] == nil {
			due[p.topic] = make(map[int]int64)
		}
		due[p.topic][p.partition] = next
	}
	return due
}

// committed forgets what due returned, as far as nothing came on top of it since.
func (o *offsets) committed(done map[string]map[int]int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for topic, partitions := range done {
		for partition, next := range partitions {
			if p := (place{topic, partition}); o.ready[p] == next {
				delete(o.ready, p)
			}
		}
	}
}

// oldest returns the time of the oldest record that was taken and is not stored, zero when there is none.
func (o *offsets) oldest() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	var oldest time.Time
	for _, spans := range o.open {
		if first := spans[0].oldest; oldest.IsZero() || first.Before(oldest) {
			oldest = first
		}
	}
	return oldest
}
