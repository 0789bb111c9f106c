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
	buckets map[ID]*tat
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
	return table[ID]{buckets: make(map[ID]*tat), max: max(3, most)}
}

// states are the buckets that a request takes tokens from.
type states struct{ key, address, site tat }

// Allow takes one token from each bucket, or none from any. The address comes first, so that a client that is
// over its quota cannot empty the bucket that all shoppers of the storefront share.
func (l *Limiter) Allow(s Subject) Verdict {
	b := l.lock(s)
	defer b.shard.mu.Unlock()
	var wait time.Duration
	next, allowed := b.states, true
	for _, step := range [...]struct {
		quota Quota
		state *tat
	}{{l.perAddress, &next.address}, {l.siteOf(s), &next.site}, {l.perKey, &next.key}} {
		if *step.state, wait, allowed = step.quota.admit(*step.state, b.now, 1); !allowed {
			break
		}
	}
	if allowed {
		b.states = next
	}
	v := l.keep(&b)
	v.Allowed, v.RetryAfter = allowed, wait
	return v
}

// Charge takes n tokens from each bucket, and may leave them below zero. With 0 it only reads what they hold.
func (l *Limiter) Charge(s Subject, n int) Verdict {
	b := l.lock(s)
	defer b.shard.mu.Unlock()
	if n > 0 {
		b.key, b.address = l.perKey.charge(b.key, b.now, n), l.perAddress.charge(b.address, b.now, n)
		b.site = l.siteOf(s).charge(b.site, b.now, n)
	}
	v := l.keep(&b)
	v.Allowed = true
	return v
}

// siteOf is the quota of the subject's /48; an IPv4 address has none.
func (l *Limiter) siteOf(s Subject) Quota {
	if s.Address.Unmap().Is6() {
		return l.perSite
	}
	return Quota{}
}

// locked is the buckets of a subject under their lock; all are in one shard.
type locked struct {
	shard *shard
	now   tat
	states

	keyID             ident.KeyID
	addressID, siteID clientID
	wide              bool // the site has a bucket of its own
	inKeys            *tat // where the tables hold the states; nil: not at all
	inAddresses       *tat
	inSites           *tat
}

// lock locks the subject's buckets. The caller unlocks the shard.
func (l *Limiter) lock(s Subject) (b locked) {
	b.keyID = s.Key
	b.addressID, b.siteID = clientID{s.Key, Network(s.Address)}, clientID{s.Key, site(s.Address)}
	b.wide = b.siteID.network != b.addressID.network
	b.shard = l.shard(s, b.siteID)
	b.shard.mu.Lock()
	// read under the lock: with an earlier time, tokens that others took look like a debt
	b.now = tat(l.now().UnixNano())
	b.inKeys, b.key = b.shard.keys.get(s.Key)
	b.inAddresses, b.address = b.shard.clients.get(b.addressID)
	if b.wide {
		b.inSites, b.site = b.shard.clients.get(b.siteID)
	}
	return b
}

// keep writes the states back and returns what the buckets hold.
func (l *Limiter) keep(b *locked) (v Verdict) {
	b.shard.keys.put(b.keyID, b.inKeys, b.key, b.now)
	b.shard.clients.put(b.addressID, b.inAddresses, b.address, b.now)
	v.Key, v.Address = l.perKey.level(b.key, b.now), l.perAddress.level(b.address, b.now)
	if b.wide {
		if b.inAddresses == nil { // the new bucket may have taken the place of the site's
			b.inSites, _ = b.shard.clients.get(b.siteID)
		}
		b.shard.clients.put(b.siteID, b.inSites, b.site, b.now)
		v.Address = tighter(v.Address, l.perSite.level(b.site, b.now))
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

// get returns the state of a bucket and where it stands; nil and full when the table does not hold it.
func (t *table[ID]) get(id ID) (in *tat, state tat) {
	if in = t.buckets[id]; in != nil {
		state = *in
	}
	return in, state
}

// put keeps a bucket's state, which stood there before; a full bucket needs none.
func (t *table[ID]) put(id ID, in *tat, state, now tat) {
	switch {
	case state <= now && in != nil:
		delete(t.buckets, id)
	case state <= now:
	case in != nil:
		*in = state
	default:
		if len(t.buckets) >= t.max {
			t.evict(now)
		}
		kept := state // so that only a bucket that stays takes memory
		t.buckets[id] = &kept
	}
}

// evict drops the full buckets of a sample, or else its fullest one, so that at most the smallest debt is
// lost.
func (t *table[ID]) evict(now tat) {
	var fullest ID
	least, seen := tat(0), 0
	for id, state := range t.buckets {
		if *state <= now {
			delete(t.buckets, id)
		} else if least == 0 || *state < least {
			fullest, least = id, *state
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
