package ratelimit

import (
	"hash/maphash"
	"net/netip"
	"time"
)

// Failures counts what clients get wrong, by address: guesses of keys above all. One that is over its quota is told
// before anything is looked up for it. Its memory is bounded as a Limiter's is.
type Failures struct {
	quota  Quota
	now    func() time.Time
	seed   maphash.Seed
	shards [shardCount]shard
}

// NewFailures returns Failures of which none was noted yet. A quota of 0 a second means that none is too many.
func NewFailures(q Quota, now func() time.Time) *Failures {
	f := &Failures{quota: q, now: now, seed: maphash.MakeSeed()}
	for i := range f.shards {
		f.shards[i].buckets = make(map[bucketID]moment)
		f.shards[i].max = defaultMaxBuckets / shardCount
	}
	return f
}

// Wait is the time until the address may fail again, 0 when it may now.
func (f *Failures) Wait(a netip.Addr) time.Duration {
	if f.quota.PerSecond <= 0 {
		return 0
	}
	id, sh := f.bucket(a)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	full, known := sh.buckets[id]
	if !known {
		return 0
	}
	if _, wait, ok := f.quota.admit(full, moment(f.now().UnixNano()), 1); !ok {
		return wait
	}
	return 0
}

// Note counts a failure.
func (f *Failures) Note(a netip.Addr) {
	if f.quota.PerSecond <= 0 {
		return
	}
	id, sh := f.bucket(a)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	now := moment(f.now().UnixNano())
	sh.put(id, f.quota.charge(sh.buckets[id], now, 1), now)
}

func (f *Failures) bucket(a netip.Addr) (bucketID, *shard) {
	id := bucketID{network: network(a), client: true}
	return id, &f.shards[maphash.Comparable(f.seed, id.network)%shardCount]
}
