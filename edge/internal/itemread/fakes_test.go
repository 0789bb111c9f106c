package itemread

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"storefront.internal/edge/internal/ratelimit"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errDown = errors.New("down")

// stores is a PostgreSQL and a Redis with their own faults. storePort and cachePort implement the interfaces.
type stores struct {
	mu         sync.Mutex
	rows       map[Key]Version
	cached     map[Key]Version
	storeDown  bool
	resets     int // reads of PostgreSQL that find their session ended
	cacheDown  bool
	storeHangs bool // PostgreSQL does not answer until the context ends
	panics     bool
	reads      int
	gets       int
	inFlight   int
	most       int
	before     func() // runs between PostgreSQL's read and its answer
	beforeGet  func() // the same of Redis
}

func newStores() *stores { return &stores{rows: map[Key]Version{}, cached: map[Key]Version{}} }

func body(revision int64) []byte {
	return fmt.Appendf(nil, `{"refresh_revision":%d,"pad":%q}`, revision, strings.Repeat("x", 2000))
}

// change commits a new version, and pushes it to Redis or not.
func (s *stores) change(k Key, revision int64, deleted, pushed bool) {
	v := Version{Revision: revision}
	if !deleted {
		v.Body = body(revision)
	}
	s.set(func() { s.rows[k] = v })
	if pushed {
		_ = cachePort{s}.Fill(context.Background(), k, v)
	}
}

func (s *stores) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

type storePort struct{ *stores }

func (p storePort) Item(ctx context.Context, k Key, held int64) (Version, bool, error) {
	s := p.stores
	s.mu.Lock()
	s.reads++
	s.inFlight++
	s.most = max(s.most, s.inFlight)
	v, found := s.rows[k]
	hangs, down, panics, before := s.storeHangs, s.storeDown || s.resets > 0, s.panics, s.before
	s.resets = max(0, s.resets-1)
	s.mu.Unlock()
	defer s.set(func() { s.inFlight-- })
	if panics {
		panic("planted")
	}
	if hangs {
		<-ctx.Done()
		return Version{}, false, ctx.Err()
	}
	if down {
		return Version{}, false, errDown
	}
	if before != nil {
		before()
	}
	if held > 0 && v.Revision == held {
		v.Body = nil
	}
	return v, found, nil
}

func (p storePort) Exist(_ context.Context, c ident.ConnectionID, items []ident.ItemID) ([]bool, error) {
	s := p.stores
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	if s.storeDown {
		return nil, errDown
	}
	exist := make([]bool, len(items))
	for i, item := range items {
		v, found := s.rows[Key{c, item}]
		exist[i] = found && !v.deleted()
	}
	return exist, nil
}

type cachePort struct{ *stores }

func (p cachePort) Item(_ context.Context, k Key) (Version, bool, error) {
	s := p.stores
	s.mu.Lock()
	s.gets++
	v, found := s.cached[k]
	down, before := s.cacheDown, s.beforeGet
	s.mu.Unlock()
	if down {
		return Version{}, false, errDown
	}
	if before != nil {
		before()
	}
	return v, found, nil
}

func (p cachePort) Fill(_ context.Context, k Key, v Version) error {
	s := p.stores
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cacheDown {
		return errDown
	}
	if old, found := s.cached[k]; !found || old.Revision < v.Revision {
		s.cached[k] = v
	}
	return nil
}

func (p cachePort) Present(_ context.Context, c ident.ConnectionID,
	items []ident.ItemID) ([]Presence, error) {
	s := p.stores
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cacheDown {
		return nil, errDown
	}
	present := make([]Presence, len(items))
	for i, item := range items {
		switch v, found := s.cached[Key{c, item}]; {
		case found && v.deleted():
			present[i] = Deleted
		case found:
			present[i] = Exists
		}
	}
	return present, nil
}

func newService(s *stores, change ...func(*Config)) *Service {
	c := Config{Store: storePort{s}, Cache: cachePort{s}, TTL: 5 * time.Second, MaxBytes: 64 << 20,
		MaxLookups: 8,
		Now:        time.Now, Logger: slog.New(slog.DiscardHandler),
		Metrics: NewMetrics(prometheus.NewRegistry())}
	for _, f := range change {
		f(&c)
	}
	return New(c)
}

// play runs f in a bubble with its own clock, in which no load is left over.
func play(t *testing.T, f func(t *testing.T, s *stores, r *Service), change ...func(*Config)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newStores()
		r := newService(s, change...)
		f(t, s, r)
		r.Close(t.Context())
	})
}

var mine = Key{"con_1", "itm_1"}

func read(t testing.TB, r *Service, k Key) (*Document, error) {
	t.Helper()
	return r.Read(t.Context(),
		Request{ConnectionID: k.Connection, ItemID: k.Item, Client: ratelimit.Subject{Key: "key_1"}})
}

// expect reads an item and wants the revision; 0 is not_found, -1 service_unavailable, -2 rate_limited.
func expect(t *testing.T, r *Service, k Key, want int64) {
	t.Helper()
	doc, err := read(t, r, k)
	codes := map[int64]fault.Code{0: fault.NotFound, -1: fault.ServiceUnavailable, -2: fault.RateLimited}
	switch {
	case want > 0 && (err != nil || doc.Revision != want || string(doc.Body) != string(body(want))):
		t.Fatalf("%v, %v, want revision %d", doc, err, want)
	case want <= 0 && !fault.Is(err, codes[want]):
		t.Fatalf("%v, %v, want %s", doc, err, codes[want])
	case want < 0 && fault.From(err).RetryAfter == 0:
		t.Fatalf("%v has no RetryAfter", err)
	}
}

// expectLookups expects that so many look-ups were made of Redis and of PostgreSQL since the last call.
func (s *stores) expectLookups(t *testing.T, gets, reads int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gets != gets || s.reads != reads {
		t.Errorf("%d look-ups in Redis and %d in PostgreSQL, want %d and %d", s.gets, s.reads, gets, reads)
	}
	s.gets, s.reads = 0, 0
}
