package itemread

import (
	"hash/maphash"
	"sync/atomic"
)

// table is a hash table of bounded size whose readers take no lock: a chain per bucket, linked by atomic pointers.
// Writers exclude each other by a lock of their own. At the bound entries go that were not read since the hand last
// passed them (CLOCK).
type table[V any] struct {
	seed    maphash.Seed
	buckets []atomic.Pointer[entry[V]]
	limit   int64 // of bytes
	bytes   atomic.Int64
	count   atomic.Int64
	hand    int
}

// entry is immutable but for its end, its flags and its link.
type entry[V any] struct {
	hash  uint64
	key   Key
	value V
	cost  int64
	until atomic.Int64 // when its life ends, on the clock of the service
	late  atomic.Bool  // its life was prolonged because no store answered
	used  atomic.Bool
	next  atomic.Pointer[entry[V]]
}

// entryCost is about what an entry takes beside its value: itself, the texts of its key, its share of the buckets.
const entryCost = 256

// newTable returns a table of at most that many bytes, with a bucket for so many of them.
func newTable[V any](seed maphash.Seed, limit, bytesPerBucket int64) *table[V] {
	n := 64
	for int64(n)*bytesPerBucket < limit {
		n *= 2
	}
	return &table[V]{seed: seed, buckets: make([]atomic.Pointer[entry[V]], n), limit: limit}
}

func (t *table[V]) bucket(hash uint64) *atomic.Pointer[entry[V]] {
	return &t.buckets[hash&uint64(len(t.buckets)-1)]
}

// get returns the entry of the key, or nil.
func (t *table[V]) get(hash uint64, k Key) *entry[V] {
	for e := t.bucket(hash).Load(); e != nil; e = e.next.Load() {
		if e.hash == hash && e.key == k {
			if !e.used.Load() { // a store each time would bounce the line between processors
				e.used.Store(true)
			}
			return e
		}
	}
	return nil
}

// put replaces the entry of the key in its place, so that no reader passes by it, or adds one. Writers only.
func (t *table[V]) put(hash uint64, k Key, value V, cost, until int64) {
	e := &entry[V]{hash: hash, key: k, value: value, cost: cost + entryCost}
	e.until.Store(until)
	t.bytes.Add(e.cost)
	t.count.Add(1)
	if link, old := t.find(hash, k); old != nil {
		e.used.Store(old.used.Load())
		e.next.Store(old.next.Load())
		link.Store(e)
		t.bytes.Add(-old.cost)
		t.count.Add(-1)
	} else {
		head := t.bucket(hash)
		e.next.Store(head.Load())
		head.Store(e)
	}
	t.evict()
}

// drop removes the entry of the key. Writers only.
func (t *table[V]) drop(hash uint64, k Key) {
	if link, e := t.find(hash, k); e != nil {
		t.unlink(link, e)
	}
}

// find returns the entry of the key, and the link that leads to it. Writers only.
func (t *table[V]) find(hash uint64, k Key) (link *atomic.Pointer[entry[V]], e *entry[V]) {
	link = t.bucket(hash)
	for e = link.Load(); e != nil && (e.hash != hash || e.key != k); e = link.Load() {
		link = &e.next
	}
	return link, e
}

// unlink takes e out. A reader who stands on it goes on along its link.
func (t *table[V]) unlink(link *atomic.Pointer[entry[V]], e *entry[V]) {
	link.Store(e.next.Load())
	t.bytes.Add(-e.cost)
	t.count.Add(-1)
}

// evict moves the hand over the buckets until the bound holds: read entries get another round, others go.
func (t *table[V]) evict() {
	for range 3 * len(t.buckets) { // readers may mark as fast as the hand clears; then the last round was for nothing
		if t.bytes.Load() <= t.limit {
			return
		}
		link := &t.buckets[t.hand]
		t.hand = (t.hand + 1) % len(t.buckets)
		for e := link.Load(); e != nil; e = link.Load() {
			if e.used.Swap(false) {
				link = &e.next
				continue
			}
			t.unlink(link, e)
		}
	}
}
