package itemread

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"storefront.internal/edge/internal/ratelimit"
	"storefront.internal/shared/backoff"
	"storefront.internal/shared/breaker"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/telemetry"
)

// Store holds the items: PostgreSQL. Its methods may block until the context ends.
type Store interface {
	// Item returns the item's newest version; found is false for an item that never existed. When held is the
	// revision of that version, its body is not read. 0 means that no body is held.
	Item(ctx context.Context, k Key, held int64) (v Version, found bool, err error)
	// Exist reports for each item whether the connection has it, not deleted.
	Exist(ctx context.Context, c ident.ConnectionID, items []ident.ItemID) ([]bool, error)
}

// Presence is what the cache knows of an item without reading it.
type Presence uint8

// The states of an item in the cache.
const (
	Unknown Presence = iota
	Exists
	Deleted
)

// Cache is the copy that all edges share: Redis. It may hold older versions than the store, and it may lose
// them.
type Cache interface {
	Item(ctx context.Context, k Key) (v Version, found bool, err error)
	// Fill stores the version unless the cache holds the same or a newer one.
	Fill(ctx context.Context, k Key, v Version) error
	Present(ctx context.Context, c ident.ConnectionID, items []ident.ItemID) ([]Presence, error)
}

// The times of the rules in the package comment.
const (
	negativeTTL = time.Second // of an item that does not exist
	// of a document when no store answers, and of one that was never verified
	staleTTL = time.Second
	// of a reader for whom memory holds a document past its time, or Redis one and PostgreSQL timed out
	// lately
	staleWait      = 400 * time.Millisecond
	slotWait       = 250 * time.Millisecond // for a free slot at the store
	cacheTimeout   = 250 * time.Millisecond
	verifyTimeout  = 2 * time.Second // after it PostgreSQL counts as down, and what Redis holds is served
	verifyInterval = time.Minute     // after it what Redis holds is verified again
	loadTimeout    = 3 * time.Second
	existTimeout   = 100 * time.Millisecond // of each store when only existence is asked
	retryAfter     = 2 * time.Second
)

// Config is what a Service needs.
type Config struct {
	Store   Store
	Cache   Cache
	Misses  *ratelimit.Limiter // bounds the look-ups that find nothing; nil: no bound
	Now     func() time.Time
	Logger  *slog.Logger
	Metrics *Metrics

	TTL        time.Duration // a document in memory is served for so long before the stores are asked again
	MaxBytes   int64         // of the documents in memory
	MaxLookups int           // in the store that are in flight
}

// Service reads catalog items. It is safe for concurrent use.
type Service struct {
	cfg        Config
	epoch      time.Time
	memory     *memory
	slots      *semaphore.Weighted
	breaker    *breaker.Breaker // of the store; opens after a timeout
	answeredAt atomic.Int64     // when the store last answered
	logs       *telemetry.Throttle[struct{}]

	mu      sync.Mutex
	loads   map[Key]*load
	running sync.WaitGroup
}

// New returns a service with an empty memory.
func New(c Config) *Service {
	return &Service{
		cfg: c, epoch: c.Now().Add(-time.Hour), memory: newMemory(c.MaxBytes),
		slots: semaphore.NewWeighted(int64(c.MaxLookups)), loads: map[Key]*load{},
		logs: telemetry.NewThrottle[struct{}](time.Second, 1),
		breaker: breaker.New(breaker.Config{Open: backoff.Policy{Min: staleTTL, Max: staleTTL},
			ProbeTimeout: verifyTimeout, Now: c.Now}),
	}
}

// Close waits for the loads that are running, until ctx ends. The readers have stopped by then.
func (s *Service) Close(ctx context.Context) {
	done := make(chan struct{})
	go func() { defer close(done); s.running.Wait() }()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// clock returns the service's time: monotonic, and never 0.
func (s *Service) clock() int64 { return int64(s.cfg.Now().Sub(s.epoch)) }

// Request names an item as a key sees it, and who asks.
type Request struct {
	ConnectionID ident.ConnectionID
	ItemID       ident.ItemID
	Client       ratelimit.Subject
}

// errNotFound is the same for every item that the connection does not have, whatever the reason.
func errNotFound() error { return fault.New(fault.NotFound, "There is nothing at this path.") }

func errUnavailable(cause error) error {
	return &fault.Error{Code: fault.ServiceUnavailable, Detail: "The catalog cannot be read right now.",
		RetryAfter: retryAfter, Err: cause}
}

// Read returns the item. The errors are the faults not_found, rate_limited (too many look-ups found nothing)
// and service_unavailable; the last two have a RetryAfter.
func (s *Service) Read(ctx context.Context, req Request) (*Document, error) {
	k := Key{req.ConnectionID, req.ItemID}
	now := s.clock()
	cached, existence := s.memory.get(k, now)
	switch {
	case now < cached.until && cached.stale:
		s.cfg.Metrics.served[sourceStale].Inc()
		s.cfg.Metrics.observeStale(now - cached.fresh)
		return cached.doc, nil
	case now < cached.until:
		s.cfg.Metrics.served[sourceMemory].Inc()
		return cached.doc, nil
	case cached.doc == nil && now < existence.until && !existence.exists:
		s.cfg.Metrics.missing[sourceMemory].Inc()
		return nil, errNotFound()
	}
	return s.readThrough(ctx, req, k, cached.doc != nil)
}

// Changed ends the time of a document that is older than the revision. It is called for hints that an item
// changed.
func (s *Service) Changed(k Key, revision int64) {
	s.mu.Lock()
	if l := s.loads[k]; l != nil { // it may have read an older version
		l.invalidated = max(l.invalidated, revision)
	}
	s.mu.Unlock()
	s.memory.invalidate(k, revision)
}
