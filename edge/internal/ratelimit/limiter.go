package ratelimit

import (
	"hash/maphash"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"storefront.internal/shared/ident"
)

// Subject is who spends tokens: a key, and the address of the client that presents it. A limiter of addresses
// alone has subjects without a key.
type Subject struct {
	Key     ident.KeyID
	Address netip.Addr
}

// Verdict says whether a request is admitted, and what both buckets hold after it.
type Verdict struct {
	Allowed    bool
	RetryAfter time.Duration // when refused: until one token is there
	Key        Level
	Address    Level
}

// Config is what a Limiter needs. The quotas are this process's share.
type Config struct {
	PerKey     Quota
	PerAddress Quota
	MaxBuckets int // bounds the memory: about 100 bytes each; default 200,000
	Now        func() time.Time
}

// Limiter holds the buckets. It is safe for concurrent use.
type Limiter struct {
	perKey, perAddress Quota
	now                func() time.Time
	policy             string
	seed               maphash.Seed
	shards             [shardCount]shard
}

const (
	shardCount        = 32
	defaultMaxBuckets = 200_000
	evictionSample    = 16
)

// bucketID names the bucket of a key, or that of one client network of the key.
type bucketID struct {
	key     ident.KeyID
	network netip.Prefix
	client  bool
}

type shard struct {
	mu      sync.Mutex
	buckets map[bucketID]tat
	max     int
}

// New returns a limiter whose buckets are full.
func New(c Config) *Limiter {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.MaxBuckets <= 0 {
		c.MaxBuckets = defaultMaxBuckets
	}
	l := &Limiter{perKey: c.PerKey, perAddress: c.PerAddress, now: c.Now, seed: maphash.MakeSeed()}
	l.policy = policyItem("key", c.PerKey) + ", " + policyItem("address", c.PerAddress)
	for i := range l.shards {
		l.shards[i].buckets = make(map[bucketID]tat)
		l.shards[i].max = max(2, c.MaxBuckets/shardCount)
	}
	return l
}

// Allow takes one token from both buckets, or none from either. The address comes first, so that a client
// that is over its quota cannot empty the bucket that all shoppers of the storefront share.
func (l *Limiter) Allow(s Subject) Verdict {
	return l.with(s, func(key, address *tat, now tat) Verdict {
		nextAddress, wait, ok := l.perAddress.admit(*address, now, 1)
		if !ok {
			return Verdict{RetryAfter: wait}
		}
		nextKey, wait, ok := l.perKey.admit(*key, now, 1)
		if !ok {
			return Verdict{RetryAfter: wait}
		}
		*key, *address = nextKey, nextAddress
		return Verdict{Allowed: true}
	})
}

// Charge takes n tokens from both buckets, and may leave them below zero. With 0 it only reads what they
// hold.
func (l *Limiter) Charge(s Subject, n int) Verdict {
	return l.with(s, func(key, address *tat, now tat) Verdict {
		if n > 0 {
			*key, *address = l.perKey.charge(*key, now, n), l.perAddress.charge(*address, now, n)
		}
		return Verdict{Allowed: true}
	})
}

// with runs f over both buckets under their lock; both are in one shard.
func (l *Limiter) with(s Subject, f func(key, address *tat, now tat) Verdict) Verdict {
	keyID := bucketID{key: s.Key}
	addressID := bucketID{key: s.Key, network: Network(s.Address), client: true}
	sh := l.shard(s, addressID)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	// read under the lock: with an earlier time, tokens that others took look like a debt
	now := tat(l.now().UnixNano())
	key, address := sh.buckets[keyID], sh.buckets[addressID]
	v := f(&key, &address, now)
	sh.put(keyID, key, now)
	sh.put(addressID, address, now)
	v.Key, v.Address = l.perKey.level(key, now), l.perAddress.level(address, now)
	return v
}

// shard returns the shard of the key, or that of the address when there is no key.
func (l *Limiter) shard(s Subject, address bucketID) *shard {
	if s.Key == "" {
		return &l.shards[maphash.Comparable(l.seed, address.network)%shardCount]
	}
	return &l.shards[maphash.String(l.seed, string(s.Key))%shardCount]
}

// put keeps a bucket's state; a full bucket needs none.
func (sh *shard) put(id bucketID, state, now tat) {
	if state <= now {
		delete(sh.buckets, id)
		return
	}
	if _, known := sh.buckets[id]; !known && len(sh.buckets) >= sh.max {
		sh.evict(now)
	}
	sh.buckets[id] = state
}

// evict drops the full buckets of a sample, or else its fullest one, so that at most the smallest debt is
// lost.
func (sh *shard) evict(now tat) {
	var fullest bucketID
	least, seen := tat(0), 0
	for id, state := range sh.buckets {
		if state <= now {
			delete(sh.buckets, id)
		} else if least == 0 || state < least {
			fullest, least = id, state
		}
		if seen++; seen == evictionSample {
			break
		}
	}
	if len(sh.buckets) >= sh.max {
		delete(sh.buckets, fullest)
	}
}

// Network is what counts as one client: an IPv4 address, or the /64 of an IPv6 address.
func Network(a netip.Addr) netip.Prefix {
	a = a.Unmap().WithZone("")
	bits := a.BitLen()
	if a.Is6() {
		bits = 64
	}
	p, err := a.Prefix(bits)
	if err != nil { // no address: such clients share a bucket
		return netip.Prefix{}
	}
	return p
}

// Policy is the value of the RateLimit-Policy field (IETF draft "RateLimit header fields for HTTP").
func (l *Limiter) Policy() string { return l.policy }

// AppendState appends the value of the RateLimit field: the tokens left, and the seconds until the bucket is
// full.
func (v Verdict) AppendState(dst []byte) []byte {
	return appendState(append(appendState(dst, "key", v.Key), ", "...), "address", v.Address)
}

// RetrySeconds is the value of Retry-After: whole seconds, at least one.
func (v Verdict) RetrySeconds() int { return max(1, ceilSeconds(v.RetryAfter)) }

func policyItem(name string, q Quota) string {
	return `"` + name + `";q=` + strconv.Itoa(q.Burst) + ";w=" + strconv.Itoa(q.Window())
}

func appendState(dst []byte, name string, l Level) []byte {
	dst = append(append(append(dst, '"'), name...), `";r=`...)
	dst = strconv.AppendInt(dst, int64(l.Remaining), 10)
	return strconv.AppendInt(append(dst, ";t="...), int64(ceilSeconds(l.Full)), 10)
}
