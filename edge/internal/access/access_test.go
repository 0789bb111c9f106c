package access

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"storefront.internal/shared/fault"
	"storefront.internal/shared/storekey"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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
		if testutil.ToFloat64(g.metrics.panics) == 0 {
			t.Error("the panic is not counted")
		}
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

// What is remembered is what Resolve would answer from memory, and never more.
func TestRemembered(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, g *Gate, s *stores) {
		secret := s.issue()
		pass(pollEvery)
		if _, ok := g.Remembered(secret); ok {
			t.Error("a key that nobody presented is remembered")
		}
		expect(t, g, secret, "")
		grant, ok := g.Remembered(secret)
		if !ok || grant.ConnectionID != "con_1" {
			t.Errorf("%+v %t", grant, ok)
		}
		if _, ok := g.Remembered([]byte("spk_malformed")); ok {
			t.Error("a malformed key is remembered")
		}
		s.revoke(secret, true)
		pass(2 * time.Second)
		if _, ok := g.Remembered(secret); ok {
			t.Error("a revoked key is remembered")
		}
		other := s.issue()
		pass(2 * time.Second)
		expect(t, g, other, "")
		reads := s.storeReads + s.cacheReads
		pass(memoryLife)
		if _, ok := g.Remembered(other); ok || s.storeReads+s.cacheReads != reads {
			t.Errorf("%t after the memory's life, %d look-ups", ok, s.storeReads+s.cacheReads-reads)
		}
	})
}
