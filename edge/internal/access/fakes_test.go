package access

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/storekey"
)

var errDown = errors.New("down")

// stores is a PostgreSQL and a Redis with their own faults. storePort and cachePort implement the interfaces.
type stores struct {
	mu           sync.Mutex
	keys         map[Digest]storekey.Grant
	version      int64
	changes      []storekey.Change // oldest first
	tokens       int
	cached       map[Digest]CacheState
	published    int64
	publishedLog []storekey.Change
	hasVersion   bool
	storeDown    bool
	cacheDown    bool
	storeHangs   bool
	storeReads   int
	cacheReads   int
	panics       bool
	beforeStore  func() // runs between PostgreSQL's read and its answer
}

func newStores() *stores {
	s := &stores{keys: map[Digest]storekey.Grant{}, cached: map[Digest]CacheState{}, hasVersion: true}
	s.changes = []storekey.Change{{Token: "begin"}}
	s.publish()
	return s
}

// issue and revoke do what control does: they commit, and publish the change.
func (s *stores) issue() []byte {
	secret := []byte(storekey.NewSecret())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys[storekey.Digest(secret)] = storekey.Grant{KeyID: "key_1", ConnectionID: "con_1", StoreID: "str_1",
		Scopes: storekey.AllScopes()}
	s.change(storekey.Digest(secret))
	s.publish()
	return secret
}

func (s *stores) revoke(secret []byte, pushed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := storekey.Digest(secret)
	delete(s.keys, d)
	s.change(d)
	if pushed {
		s.publish()
	}
}

func (s *stores) change(d Digest) {
	s.version++
	s.tokens++
	s.changes = append(s.changes, storekey.Change{Version: s.version, Token: fmt.Sprint(s.tokens), Digest: d})
}

// publish copies every change to Redis.
func (s *stores) publish() {
	for _, c := range s.changes {
		if _, live := s.keys[c.Digest]; !live && c.Version > 0 {
			s.cached[c.Digest] = CacheRevoked
		}
	}
	s.hasVersion, s.published, s.publishedLog = true, s.version, slices.Clone(s.changes)
}

// answer is what a store with these changes answers.
func answer(version int64, changes []storekey.Change, since storekey.Change, known bool) Log {
	l := Log{Version: version}
	for _, c := range slices.Backward(changes) {
		if len(l.Changes) > 0 && (!known || c.Version < since.Version || len(l.Changes) == MaxChanges) {
			break
		}
		l.Changes = append(l.Changes, c)
	}
	return l
}

func (s *stores) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

type storePort struct{ *stores }

func (p storePort) Grant(ctx context.Context, d Digest) (storekey.Grant, bool, error) {
	s := p.stores
	s.mu.Lock()
	s.storeReads++
	if s.panics {
		s.mu.Unlock()
		panic("planted")
	}
	if s.storeHangs {
		s.mu.Unlock()
		<-ctx.Done()
		return storekey.Grant{}, false, ctx.Err()
	}
	r, ok := s.keys[d]
	down, hook := s.storeDown, s.beforeStore
	s.mu.Unlock()
	if down {
		return storekey.Grant{}, false, errDown
	}
	if hook != nil {
		hook()
	}
	return r, ok, nil
}

func (p storePort) Changes(ctx context.Context, since storekey.Change, known bool) (Log, error) {
	s := p.stores
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.storeHangs {
		s.mu.Unlock()
		<-ctx.Done()
		s.mu.Lock()
		return Log{}, ctx.Err()
	}
	if s.storeDown {
		return Log{}, errDown
	}
	return answer(s.version, s.changes, since, known), nil
}

type cachePort struct{ *stores }

func (p cachePort) Grant(_ context.Context, d Digest) (storekey.Grant, CacheState, error) {
	s := p.stores
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cacheReads++
	if s.cacheDown {
		return storekey.Grant{}, CacheEmpty, errDown
	}
	return storekey.Grant{KeyID: "key_1", ConnectionID: "con_1", StoreID: "str_1",
		Scopes: storekey.AllScopes()}, s.cached[d], nil
}

func (p cachePort) Fill(_ context.Context, d Digest, _ storekey.Grant) error {
	s := p.stores
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cacheDown {
		return errDown
	}
	if s.cached[d] == CacheEmpty {
		s.cached[d] = CacheGranted
	}
	return nil
}

func (p cachePort) Changes(_ context.Context, since storekey.Change, known bool) (Log, bool, error) {
	s := p.stores
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cacheDown {
		return Log{}, false, errDown
	}
	return answer(s.published, s.publishedLog, since, known), s.hasVersion, nil
}

func newResolver(s *stores) *KeyResolver {
	return New(Config{Store: storePort{s}, Cache: cachePort{s}, Now: time.Now,
		Logger:  slog.New(slog.DiscardHandler),
		Metrics: NewMetrics(prometheus.NewRegistry())})
}

// play runs f beside the resolver's pollers in a bubble with its own clock.
func play(t *testing.T, f func(t *testing.T, r *KeyResolver, s *stores)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newStores()
		r := newResolver(s)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); _ = r.Run(ctx) }()
		synctest.Wait()
		f(t, r, s)
		cancel()
		<-done
	})
}

// pass lets time pass and waits until its consequences have happened.
func pass(d time.Duration) {
	time.Sleep(d) // the bubble's clock
	synctest.Wait()
}

func expect(t *testing.T, r *KeyResolver, secret []byte, want fault.Code) {
	t.Helper()
	grant, err := r.Resolve(t.Context(), secret)
	switch {
	case want == "" && err != nil:
		t.Fatalf("refused: %v", err)
	case want == "" && grant.ConnectionID != ident.ConnectionID("con_1"):
		t.Fatalf("grant %+v", grant)
	case want != "" && !fault.Is(err, want):
		t.Fatalf("error %v, want %s", err, want)
	}
}

// publishVersionOnly is publish as the previous release does it.
func (s *stores) publishVersionOnly() {
	log := s.publishedLog
	s.publish()
	s.publishedLog = log
}
