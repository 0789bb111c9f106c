package ratelimit

import (
	"hash/maphash"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"storefront.internal/shared/ident"
)

// Subject is who spends tokens: a key, and the address of the client that presented it.
type Subject struct {
	Key     ident.KeyID
	Address netip.Addr
}

// Verdict says whether a request is admitted, and how both buckets stand.
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
	MaxBuckets int // bound of memory, about 100 bytes each; default 200,000
	Now        func() time.Time
}

// Limiter holds the buckets. It may be used by many goroutines.
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

// bucketID names a bucket: that of the key itself, or of one client network of the key.
type bucketID struct {
	key     ident.KeyID
	network netip.Prefix
	client  bool
}

type shard struct {
	mu      sync.Mutex
	buckets map[bucketID]moment
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
		l.shards[i].buckets = make(map[bucketID]moment)
		l.shards[i].max = max(2, c.MaxBuckets/shardCount)
	}
	return l
}

// Allow takes one token of both buckets, or of none. The address is asked first, so that one client that is over its
// quota cannot empty the bucket that all shoppers of the storefront share.
func (l *Limiter) Allow(s Subject) Verdict {
	return l.with(s, func(key, address *moment, now moment) Verdict {
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

// Charge takes n more tokens for a request that was admitted, and may leave the buckets below zero.
func (l *Limiter) Charge(s Subject, n int) Verdict {
	return l.with(s, func(key, address *moment, now moment) Verdict {
		if n > 0 {
			*key, *address = l.perKey.charge(*key, now, n), l.perAddress.charge(*address, now, n)
		}
		return Verdict{Allowed: true}
	})
}

// with runs f over both buckets under their lock. They live in one shard, chosen by the key.
func (l *Limiter) with(s Subject, f func(key, address *moment, now moment) Verdict) Verdict {
	keyID := bucketID{key: s.Key}
	addressID := bucketID{key: s.Key, network: network(s.Address), client: true}
	sh := &l.shards[maphash.String(l.seed, string(s.Key))%shardCount]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	now := moment(l.now().UnixNano()) // behind the lock: a time from before the wait makes the others' tokens look like a debt
	key, address := sh.buckets[keyID], sh.buckets[addressID]
	v := f(&key, &address, now)
	sh.put(keyID, key, now)
	sh.put(addressID, address, now)
	v.Key, v.Address = l.perKey.level(key, now), l.perAddress.level(address, now)
	return v
}

// put keeps a bucket's state; a full bucket needs none.
func (sh *shard) put(id bucketID, full, now moment) {
	if full <= now {
		delete(sh.buckets, id)
		return
	}
	if _, known := sh.buckets[id]; !known && len(sh.buckets) >= sh.max {
		sh.evict(now)
	}
	sh.buckets[id] = full
}

// evict makes room: full buckets of a sample go, and when there are none the fullest one. What is forgotten so is at
// most the debt of the client that owed least.
func (sh *shard) evict(now moment) {
	var fullest bucketID
	least, seen := moment(0), 0
	for id, full := range sh.buckets {
		if full <= now {
			delete(sh.buckets, id)
		} else if least == 0 || full < least {
			fullest, least = id, full
		}
		if seen++; seen == evictionSample {
			break
		}
	}
	if len(sh.buckets) >= sh.max {
		delete(sh.buckets, fullest)
	}
}

// network is the unit of a client: an IPv4 address, or the /64 of an IPv6 one, of which a client has all addresses.
func network(a netip.Addr) netip.Prefix {
	a = a.Unmap().WithZone("")
	bits := a.BitLen()
	if a.Is6() {
		bits = 64
	}
	p, err := a.Prefix(bits)
	if err != nil { // no address: all such clients share a bucket
		return netip.Prefix{}
	}
	return p
}

// Policy is the value of the RateLimit-Policy field (IETF draft "RateLimit header fields for HTTP"): quota and window.
func (l *Limiter) Policy() string { return l.policy }

// AppendState appends the value of the RateLimit field: what is left, and the seconds until the bucket is full.
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
