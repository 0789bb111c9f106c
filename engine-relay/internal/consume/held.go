package consume

import (
	"sync"
	"time"

	"storefront.internal/shared/stream"
)

// held is a fetched batch from its arrival until all of its records lie stored. Its records may go into several
// transactions, of several workers.
type held struct {
	batch  stream.Batch
	parts  int  // loads that hold records of it and are not stored
	sealed bool // every record went into a load
}

// holdings are the batches of a generation that are not stored yet.
type holdings struct {
	mu   sync.Mutex
	open map[*held]struct{}
}

func newHoldings() *holdings { return &holdings{open: make(map[*held]struct{})} }

func (h *holdings) take(b stream.Batch) *held {
	h.mu.Lock()
	defer h.mu.Unlock()
	one := &held{batch: b}
	h.open[one] = struct{}{}
	return one
}

// part notes that one more load holds records of the batch; last says that no further one will.
func (h *holdings) part(one *held, last bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	one.parts++
	one.sealed = last
}

// stored notes that a load is stored and returns the batches that are whole with it.
func (h *holdings) stored(parts []*held) []stream.Batch {
	h.mu.Lock()
	defer h.mu.Unlock()
	var whole []stream.Batch
	for _, one := range parts {
		if one.parts--; one.parts == 0 && one.sealed {
			whole = append(whole, one.batch)
			delete(h.open, one)
		}
	}
	return whole
}

// oldest returns the time of the oldest record that was read and is not stored, zero when there is none.
func (h *holdings) oldest() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	var oldest time.Time
	for one := range h.open {
		if first := one.batch.Records[0].Time; oldest.IsZero() || first.Before(oldest) {
			oldest = first
		}
	}
	return oldest
}
