package itemread

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"storefront.internal/edge/internal/ratelimit"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
)

// Store is the truth about items: PostgreSQL. Its methods may block until the context ends.
type Store interface {
	// Item answers the item's newest version; found is false when nothing was ever known of it. When that is the revision
	// of which the caller holds the body already (0: none), no body is read.
	Item(ctx context.Context, k Key, held int64) (v Version, found bool, err error)
	// Exist answers for each item whether the connection has it, not deleted.
	Exist(ctx context.Context, c ident.ConnectionID, items []ident.ItemID) ([]bool, error)
}

// Presence is what the cache knows of an item without reading it.
type Presence uint8

// The states of an item in the cache.
const (
	Unheard Presence = iota
	Here
	Deleted
)

// Cache is the copy that all edges share: Redis. It may hold older versions than the store, and it may forget.
type Cache interface {
	Item(ctx context.Context, k Key) (v Version, found bool, err error)
	// Fill keeps the version unless the cache holds the same or a newer one.
	Fill(ctx context.Context, k Key, v Version) error
	Present(ctx context.Context, c ident.ConnectionID, items []ident.ItemID) ([]Presence, error)
}

// Budget bounds look-ups that find nothing. *ratelimit.Limiter is one.
type Budget interface {
	// Charge takes n tokens; with 0 it only tells how the buckets stand.
	Charge(s ratelimit.Subject, n int) ratelimit.Verdict
}

// The times of the rules in the package comment.
const (
	negativeLife = time.Second            // of what does not exist
	lateLife     = time.Second            // by which a copy is prolonged when no store answered, and of one that was never proven
	patience     = 500 * time.Millisecond // of a reader for whom memory holds a copy past its life
	slotWait     = 250 * time.Millisecond // for a turn at the store
	cacheTimeout = 250 * time.Millisecond
	proofTimeout = 2 * time.Second // after which PostgreSQL is away, for whom Redis has an answer
	proofLife    = time.Minute     // after which what Redis holds is proven again
	loadTimeout  = 3 * time.Second
	existTimeout = 100 * time.Millisecond // of each store, when only existence is asked
	retryAfter   = 2 * time.Second
)

// Config is what a Service needs.
type Config struct {
	Store   Store
	Cache   Cache
	Misses  Budget // nil: none
	Now     func() time.Time
	Logger  *slog.Logger
	Metrics *Metrics
	// TTL is how long a copy in memory serves without being asked for again. Default 5 s.
	TTL time.Duration
	// MaxBytes bounds the copies in memory. Default 64 MiB.
	MaxBytes int64
	// MaxLookups is how many look-ups in the store may be in flight. Default 8.
	MaxLookups int
}

// Service is operation 2. It may be used by many goroutines.
type Service struct {
	store   Store
	cache   Cache
	misses  Budget
	now     func() time.Time
	epoch   time.Time
	ttl     int64
	log     *slog.Logger
	metrics *Metrics
	memory  *memory
	slots   chan struct{}
	doubt   doubt

	mu      sync.Mutex
	flights map[Key]*flight
	work    sync.WaitGroup
}

// New returns a service with an empty memory.
func New(c Config) *Service {
	if c.TTL <= 0 {
		c.TTL = 5 * time.Second
	}
	if c.MaxBytes <= 0 {
		c.MaxBytes = 64 << 20
	}
	if c.MaxLookups <= 0 {
		c.MaxLookups = 8
	}
	return &Service{store: c.Store, cache: c.Cache, misses: c.Misses, now: c.Now, epoch: c.Now().Add(-time.Hour), ttl: int64(c.TTL), log: c.Logger,
		metrics: c.Metrics, memory: newMemory(c.MaxBytes), slots: make(chan struct{}, c.MaxLookups), flights: map[Key]*flight{}}
}

// Close waits for the loads that are under way, until ctx ends. Readers are gone by then.
func (s *Service) Close(ctx context.Context) {
	done := make(chan struct{})
	go func() { defer close(done); s.work.Wait() }()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// clock is the time on which lives are measured: monotonic, and never 0.
func (s *Service) clock() int64 { return int64(s.now().Sub(s.epoch)) }

// Request names an item as a key sees it, and who asks.
type Request struct {
	ConnectionID ident.ConnectionID
	ItemID       ident.ItemID
	Client       ratelimit.Subject
}

// errNotFound is the answer to every item that the connection has not got, whatever the reason.
func errNotFound() error { return fault.New(fault.NotFound, "There is nothing at this path.") }

// errUnavailable says that nobody can tell right now.
func errUnavailable(cause error) error {
	return &fault.Error{Code: fault.ServiceUnavailable, Detail: "The catalog cannot be read right now.", RetryAfter: retryAfter, Err: cause}
}

// Read answers the item. The errors are the faults not_found, rate_limited (the budget of look-ups that find nothing is
// used up) and service_unavailable, the last two with a time.
func (s *Service) Read(ctx context.Context, req Request) (*Document, error) {
	k := Key{req.ConnectionID, req.ItemID}
	hash, now := s.memory.hash(k), s.clock()
	copied := s.memory.docs.get(hash, k)
	if copied != nil && now < copied.until.Load() {
		if copied.late.Load() {
			s.metrics.served[fromLate].Inc()
		} else {
			s.metrics.served[fromMemory].Inc()
		}
		return copied.value, nil
	}
	if e := s.memory.exists.get(hash, k); copied == nil && e != nil && !e.value && now < e.until.Load() {
		s.metrics.missing[fromMemory].Inc()
		return nil, errNotFound()
	}
	return s.load(ctx, req, k, hash, copied != nil)
}

// Changed ends the life of a copy that is older than the revision: somebody says that the item changed. It is a hint,
// and never blocks for long.
func (s *Service) Changed(k Key, revision int64) {
	s.mu.Lock()
	if f := s.flights[k]; f != nil { // what it read may be older
		f.hinted = max(f.hinted, revision)
	}
	s.mu.Unlock()
	s.memory.expire(s.memory.hash(k), k, revision)
}
