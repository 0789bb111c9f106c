package access

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/storekey"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errDown = errors.New("down")

// stores is a PostgreSQL and a Redis with their own faults. Its methods are both ports.
type stores struct {
	mu          sync.Mutex
	keys        map[Digest]storekey.Grant
	version     int64
	cached      map[Digest]CacheState
	published   int64
	hasVersion  bool
	storeDown   bool
	cacheDown   bool
	storeHangs  bool
	storeReads  int
	cacheReads  int
	panics      bool
	beforeStore func() // runs between PostgreSQL's read and its answer
}

func newStores() *stores {
	return &stores{keys: map[Digest]storekey.Grant{}, cached: map[Digest]CacheState{}, hasVersion: true}
}

// issue and revoke do what control does: commit, push, then publish the version.
func (s *stores) issue() []byte {
	secret := []byte(storekey.NewSecret())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys[storekey.Digest(secret)] = storekey.Grant{KeyID: "key_1", ConnectionID: "con_1", StoreID: "str_1", Scopes: storekey.AllScopes()}
	s.version++
	s.published = s.version
	return secret
}

func (s *stores) revoke(secret []byte, pushed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := storekey.Digest(secret)
	delete(s.keys, d)
	s.version++
	if pushed {
		s.cached[d] = CacheRevoked
		s.published = s.version
	}
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
	g, ok := s.keys[d]
	down, hook := s.storeDown, s.beforeStore
	s.mu.Unlock()
	if down {
		return storekey.Grant{}, false, errDown
	}
	if hook != nil {
		hook()
	}
	return g, ok, nil
}

func (p storePort) Version(ctx context.Context) (int64, error) {
	s := p.stores
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.storeHangs {
		s.mu.Unlock()
		<-ctx.Done()
		s.mu.Lock()
		return 0, ctx.Err()
	}
	if s.storeDown {
		return 0, errDown
	}
	return s.version, nil
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
	return storekey.Grant{KeyID: "key_1", ConnectionID: "con_1", StoreID: "str_1", Scopes: storekey.AllScopes()}, s.cached[d], nil
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

func (p cachePort) Version(context.Context) (int64, bool, error) {
	s := p.stores
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cacheDown {
		return 0, false, errDown
	}
	return s.published, s.hasVersion, nil
}

func newGate(s *stores) *Gate {
	return New(Config{Store: storePort{s}, Cache: cachePort{s}, Now: time.Now, Logger: slog.New(slog.DiscardHandler),
		Metrics: NewMetrics(prometheus.NewRegistry())})
}

// play runs f beside the gate's pollers in a bubble with its own clock.
func play(t *testing.T, f func(t *testing.T, g *Gate, s *stores)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newStores()
		g := newGate(s)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); _ = g.Run(ctx) }()
		synctest.Wait()
		f(t, g, s)
		cancel()
		<-done
	})
}

// pass lets time go by and waits until everything that it set off has happened.
func pass(d time.Duration) {
	time.Sleep(d) // the bubble's clock
	synctest.Wait()
}

func expect(t *testing.T, g *Gate, secret []byte, want fault.Code) {
	t.Helper()
	grant, err := g.Resolve(t.Context(), secret)
	switch {
	case want == "" && err != nil:
		t.Fatalf("refused: %v", err)
	case want == "" && grant.ConnectionID != ident.ConnectionID("con_1"):
		t.Fatalf("grant %+v", grant)
	case want != "" && !fault.Is(err, want):
		t.Fatalf("error %v, want %s", err, want)
	}
}

func TestMalformedSecretTouchesNothing(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, g *Gate, s *stores) {
		secret := s.issue()
		secret[10] ^= 1
		for _, bad := range [][]byte{secret, nil, []byte("spk_"), []byte("Bearer")} {
			expect(t, g, bad, fault.Unauthorized)
		}
		if s.storeReads+s.cacheReads != 0 {
			t.Errorf("%d and %d look-ups", s.storeReads, s.cacheReads)
		}
	})
}

func TestNewKeyIsGoodAtOnceAndRemembered(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, g *Gate, s *stores) {
		secret := s.issue()
		expect(t, g, secret, "")
		pass(pollEvery) // the version moved: one more look-up, answered by Redis
		for range 100 {
			expect(t, g, secret, "")
		}
		if s.storeReads != 1 || s.cacheReads > 2 {
			t.Errorf("%d store and %d cache reads, want 1 and at most 2", s.storeReads, s.cacheReads)
		}
		pass(memoryLife)
		expect(t, g, secret, "")
		if s.storeReads != 1 {
			t.Errorf("%d store reads after the memory's life, want 1: Redis holds it", s.storeReads)
		}
	})
}

// A key is issued after somebody tried its secret: that it was unknown is forgotten within a second.
func TestRefusalIsForgottenWithinASecond(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, g *Gate, s *stores) {
		secret := s.issue()
		s.revoke(secret, false)
		pass(pollEvery)
		for range 50 {
			expect(t, g, secret, fault.Unauthorized)
		}
		if s.storeReads != 1 {
			t.Errorf("%d look-ups of an unknown key within a second, want 1", s.storeReads)
		}
		s.set(func() { s.keys[storekey.Digest(secret)] = storekey.Grant{ConnectionID: "con_1"} })
		pass(negativeLife)
		expect(t, g, secret, "")
	})
}

func TestRevokedKeyIsRefusedWithinTwoSeconds(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		pushed bool
		cut    func(s *stores)
	}{
		"all is well":                          {true, func(*stores) {}},
		"Redis has not heard":                  {false, func(*stores) {}},
		"Redis down":                           {false, func(s *stores) { s.cacheDown = true }},
		"PostgreSQL cut off from the edge":     {true, func(s *stores) { s.storeDown = true }},
		"PostgreSQL hangs":                     {true, func(s *stores) { s.storeHangs = true }},
		"Redis forgot everything, version too": {false, func(s *stores) { s.hasVersion, s.published, s.cached = false, 0, map[Digest]CacheState{} }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, func(t *testing.T, g *Gate, s *stores) {
				secret := s.issue()
				pass(pollEvery)
				expect(t, g, secret, "")
				s.set(func() { tc.cut(s) })
				s.revoke(secret, tc.pushed)
				pass(2 * time.Second)
				expect(t, g, secret, fault.Unauthorized)
			})
		})
	}
}

func TestKeysConfirmedByRedisOutliveAnOutageOfPostgreSQL(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, g *Gate, s *stores) {
		secret := s.issue()
		pass(pollEvery)
		expect(t, g, secret, "")
		s.set(func() { s.storeDown = true })
		for range 60 {
			pass(5 * time.Second)
			expect(t, g, secret, "")
		}
		unknown := []byte(storekey.NewSecret())
		expect(t, g, unknown, fault.ServiceUnavailable) // nobody can tell
	})
}

func TestKeysConfirmedByPostgreSQLOutliveAnOutageOfRedis(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, g *Gate, s *stores) {
		secret := s.issue()
		s.set(func() { s.cacheDown = true })
		for range 60 {
			pass(5 * time.Second)
			expect(t, g, secret, "")
		}
	})
}

func TestNobodyIsLetInWhenBothAreGoneForFifteenSeconds(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, g *Gate, s *stores) {
		secret := s.issue()
		pass(pollEvery)
		expect(t, g, secret, "")
		s.set(func() { s.storeDown, s.cacheDown = true, true })
		pass(14 * time.Second) // past the memory's ten seconds
		expect(t, g, secret, "")
		pass(2 * time.Second)
		_, err := g.Resolve(t.Context(), secret)
		if f := fault.From(err); f.Code != fault.ServiceUnavailable || f.RetryAfter == 0 {
			t.Fatalf("error %v, want service_unavailable with a time", err)
		}
		s.set(func() { s.storeDown = false })
		expect(t, g, secret, "")
	})
}

// A stale Redis, behind the version that PostgreSQL told, is not believed even when PostgreSQL is gone since.
func TestRedisBehindPostgreSQLIsNotBelieved(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, g *Gate, s *stores) {
		secret := s.issue()
		pass(pollEvery)
		expect(t, g, secret, "")
		s.revoke(secret, false)
		pass(pollEvery)
		s.set(func() { s.storeDown = true })
		expect(t, g, secret, fault.ServiceUnavailable)
	})
}

// What was read before the version moved is not remembered after it, and does not undo a tombstone.
func TestLookUpThatWasOvertakenIsNotRemembered(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, g *Gate, s *stores) {
		secret := s.issue()
		pass(pollEvery)
		s.set(func() {
			s.beforeStore = func() {
				s.revoke(secret, true)
				time.Sleep(1500 * time.Millisecond) // the poll sees the move meanwhile
				s.set(func() { s.beforeStore = nil })
			}
		})
		expect(t, g, secret, "") // it was good when it was read
		expect(t, g, secret, fault.Unauthorized)
		if s.cached[storekey.Digest(secret)] != CacheRevoked {
			t.Error("the late fill undid the tombstone")
		}
	})
}

func TestNudgePollsAtOnce(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, g *Gate, s *stores) {
		secret := s.issue()
		pass(pollEvery)
		expect(t, g, secret, "")
		s.revoke(secret, true)
		g.Nudge()
		synctest.Wait()
		expect(t, g, secret, fault.Unauthorized)
	})
}

func TestOneLoadForManyCallers(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, g *Gate, s *stores) {
		secret := s.issue()
		pass(pollEvery)
		s.set(func() { s.beforeStore = func() { time.Sleep(time.Millisecond) } })
		var wg sync.WaitGroup
		for range 64 {
			wg.Go(func() { expect(t, g, secret, "") })
		}
		wg.Wait()
		if s.storeReads != 1 {
			t.Errorf("%d look-ups, want 1", s.storeReads)
		}
	})
}

func TestPanicInALookUpIsAnError(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, g *Gate, s *stores) {
		secret := s.issue()
		s.set(func() { s.panics = true })
		expect(t, g, secret, fault.ServiceUnavailable)
	})
}

func TestCallerThatGivesUpDoesNotFailTheOthers(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, g *Gate, s *stores) {
		secret := s.issue()
		pass(pollEvery)
		s.set(func() { s.beforeStore = func() { time.Sleep(time.Second) } })
		var wg sync.WaitGroup
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			defer cancel()
			if _, err := g.Resolve(ctx, secret); !fault.Is(err, fault.ServiceUnavailable) {
				t.Errorf("error %v", err)
			}
		})
		time.Sleep(5 * time.Millisecond)
		expect(t, g, secret, "")
		wg.Wait()
	})
}

func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	m := newMemory[int](10)
	for i := range 100 {
		m.put(Digest{byte(i)}, entry[int]{})
	}
	if m.len() != 10 {
		t.Errorf("%d entries", m.len())
	}
	if _, ok := m.get(Digest{99}); !ok {
		t.Error("the newest entry is gone")
	}
}

// After a restore PostgreSQL's version is lower than what was seen: it is right all the same.
func TestVersionThatFellIsAMove(t *testing.T) {
	t.Parallel()
	var c confirmation
	at := time.Unix(1000, 0)
	c.storeTold(9, at)
	before := c.generation()
	if !c.storeTold(3, at) || c.generation() == before || !c.confirmed(at) {
		t.Error("a version that fell is no move, or does not confirm")
	}
	if c.cacheTold(2, true, at); c.cacheTrusted(at) {
		t.Error("a cache behind PostgreSQL is trusted")
	}
	if c.cacheTold(3, true, at); !c.cacheTrusted(at) || c.cacheTrusted(at.Add(16*time.Second)) {
		t.Error("a cache abreast of PostgreSQL is not trusted, or for too long")
	}
}
