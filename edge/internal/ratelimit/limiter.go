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

// Config is what a Limiter needs. The quotas are this process's share. The networks of one IPv6 /48 together
// have eight times the quota of an address.
type Config struct {
	PerKey     Quota
	PerAddress Quota
	MaxBuckets int // of clients, and as many of keys: about 100 bytes each; default 200,000
	Now        func() time.Time
}

// Limiter holds the buckets. It is safe for concurrent use.
type Limiter struct {
	perKey, perAddress Quota
	perSite            Quota // of a /48 of IPv6 addresses
	now                func() time.Time
	policy             string
	seed               maphash.Seed
	shards             [shardCount]shard
}

const (
	shardCount        = 32
	defaultMaxBuckets = 200_000
	evictionSample    = 16
	// networksPerSite is how many client networks of a /48 may use up their quotas. One customer can rent a
	// /48, which has 65,536 networks of 64 bits.
	networksPerSite = 8
)

// clientID names the bucket of one client network, or of one /48, of a key.
type clientID struct {
	key     ident.KeyID
	network netip.Prefix
}

// shard holds the buckets of keys apart from those of clients: clients, of which there may be any number,
// push no key out.
type shard struct {
	mu      sync.Mutex
	keys    table[ident.KeyID]
	clients table[clientID]
}

// table is a bounded number of buckets.
type table[ID comparable] struct {
	buckets map[ID]tat
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
	site := Quota{PerSecond: networksPerSite * c.PerAddress.PerSecond,
		Burst: networksPerSite * c.PerAddress.Burst}
	l := &Limiter{perKey: c.PerKey, perAddress: c.PerAddress, perSite: site, now: c.Now,
		seed: maphash.MakeSeed()}
	l.policy = policyItem("key", c.PerKey) + ", " + policyItem("address", c.PerAddress)
	for i := range l.shards {
		l.shards[i].keys = newTable[ident.KeyID](c.MaxBuckets / shardCount)
		l.shards[i].clients = newTable[clientID](c.MaxBuckets / shardCount)
	}
	return l
}

func newTable[ID comparable](most int) table[ID] {
	return table[ID]{buckets: make(map[ID]tat), max: max(3, most)}
}

// states are the buckets that a request takes tokens from.
type states struct{ key, address, site tat }

// Allow takes one token from each bucket, or none from any. The address comes first, so that a client that is
// over its quota cannot empty the bucket that all shoppers of the storefront share.
func (l *Limiter) Allow(s Subject) Verdict {
	return l.with(s, func(b *states, now tat) Verdict {
		next := *b
		for _, step := range []struct {
			quota Quota
			state *tat
		}{{l.perAddress, &next.address}, {l.siteOf(s), &next.site}, {l.perKey, &next.key}} {
			after, wait, ok := step.quota.admit(*step.state, now, 1)
			if !ok {
				return Verdict{RetryAfter: wait}
			}
			*step.state = after
		}
		*b = next
		return Verdict{Allowed: true}
	})
}

// Charge takes n tokens from each bucket, and may leave them below zero. With 0 it only reads what they hold.
func (l *Limiter) Charge(s Subject, n int) Verdict {
	return l.with(s, func(b *states, now tat) Verdict {
		if n > 0 {
			b.key, b.address = l.perKey.charge(b.key, now, n), l.perAddress.charge(b.address, now, n)
			b.site = l.siteOf(s).charge(b.site, now, n)
		}
		return Verdict{Allowed: true}
	})
}

// siteOf is the quota of the subject's /48; an IPv4 address has none.
func (l *Limiter) siteOf(s Subject) Quota {
	if s.Address.Unmap().Is6() {
		return l.perSite
	}
	return Quota{}
}

// with runs f over the buckets under their lock; all are in one shard.
func (l *Limiter) with(s Subject, f func(b *states, now tat) Verdict) Verdict {
	addressID, siteID := clientID{s.Key, Network(s.Address)}, clientID{s.Key, site(s.Address)}
	sh := l.shard(s, siteID)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	// read under the lock: with an earlier time, tokens that others took look like a debt
	now := tat(l.now().UnixNano())
	b := states{key: sh.keys.buckets[s.Key], address: sh.clients.buckets[addressID]}
	wide := siteID != addressID
	if wide {
		b.site = sh.clients.buckets[siteID]
	}
	v := f(&b, now)
	sh.keys.put(s.Key, b.key, now)
	sh.clients.put(addressID, b.address, now)
	v.Key, v.Address = l.perKey.level(b.key, now), l.perAddress.level(b.address, now)
	if wide {
		sh.clients.put(siteID, b.site, now)
		v.Address = tighter(v.Address, l.perSite.level(b.site, now))
	}
	return v
}

// tighter is the level of the bucket that is empty first.
func tighter(a, b Level) Level {
	if b.Remaining < a.Remaining || b.Wait > a.Wait {
		return b
	}
	return a
}

// shard returns the shard of the key, or that of the client's site when there is no key.
func (l *Limiter) shard(s Subject, site clientID) *shard {
	if s.Key == "" {
		return &l.shards[maphash.Comparable(l.seed, site.network)%shardCount]
	}
	return &l.shards[maphash.String(l.seed, string(s.Key))%shardCount]
}

// put keeps a bucket's state; a full bucket needs none.
func (t *table[ID]) put(id ID, state, now tat) {
	if state <= now {
		delete(t.buckets, id)
		return
	}
	if _, known := t.buckets[id]; !known && len(t.buckets) >= t.max {
		t.evict(now)
	}
	t.buckets[id] = state
}

// evict drops the full buckets of a sample, or else its fullest one, so that at most the smallest debt is
// lost.
func (t *table[ID]) evict(now tat) {
	var fullest ID
	least, seen := tat(0), 0
	for id, state := range t.buckets {
		if state <= now {
			delete(t.buckets, id)
		} else if least == 0 || state < least {
			fullest, least = id, state
		}
		if seen++; seen == evictionSample {
			break
		}
	}
	if len(t.buckets) >= t.max {
		delete(t.buckets, fullest)
	}
}

// Network is what counts as one client: an IPv4 address, or the /64 of an IPv6 address.
func Network(a netip.Addr) netip.Prefix { return network(a, 64) }

// site is the /48 of an IPv6 address, which is what one customer can rent, or an IPv4 address.
func site(a netip.Addr) netip.Prefix { return network(a, 48) }

func network(a netip.Addr, ofIPv6 int) netip.Prefix {
	a = a.Unmap().WithZone("")
	bits := a.BitLen()
	if a.Is6() {
		bits = ofIPv6
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
