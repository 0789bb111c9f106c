package consumer

import (
	"sync"
	"time"

	"storefront.internal/shared/stream"
)

// fetchedBatch is a batch of a partition that is not completely stored. Its records may go into several
// transactions, of several workers.
type fetchedBatch struct {
	batch       stream.Batch
	pending     int  // transactions that have records of it and are not committed
	allAssigned bool // every record is in a transaction
}

// unstored is the fetched batches of a generation that are not completely stored.
type unstored struct {
	mu      sync.Mutex
	batches map[*fetchedBatch]struct{}
}

func newUnstored() *unstored { return &unstored{batches: make(map[*fetchedBatch]struct{})} }

func (u *unstored) add(b stream.Batch) *fetchedBatch {
	u.mu.Lock()
	defer u.mu.Unlock()
	f := &fetchedBatch{batch: b}
	u.batches[f] = struct{}{}
	return f
}

// assign notes that one more transaction has records of the batch; last says that it has the last ones.
func (u *unstored) assign(f *fetchedBatch, last bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	f.pending++
	f.allAssigned = last
}

// stored notes a committed transaction and returns the batches that are completely stored with it.
func (u *unstored) stored(parts []*fetchedBatch) []stream.Batch {
	u.mu.Lock()
	defer u.mu.Unlock()
	var complete []stream.Batch
	for _, f := range parts {
		if f.pending--; f.pending == 0 && f.allAssigned {
			complete = append(complete, f.batch)
			delete(u.batches, f)
		}
	}
	return complete
}

// oldest returns the time of the oldest record that was read and is not stored, zero when there is none.
func (u *unstored) oldest() time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	var oldest time.Time
	for f := range u.batches {
		if first := f.batch.Records[0].Time; oldest.IsZero() || first.Before(oldest) {
			oldest = first
		}
	}
	return oldest
}
