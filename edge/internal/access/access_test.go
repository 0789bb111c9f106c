package access

import (
	"context"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"storefront.internal/shared/fault"
	"storefront.internal/shared/storekey"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMalformedSecretIsNotLookedUp(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, r *KeyResolver, s *stores) {
		secret := s.issue()
		secret[10] ^= 1
		for _, bad := range [][]byte{secret, nil, []byte("spk_"), []byte("Bearer")} {
			expect(t, r, bad, fault.Unauthorized)
		}
		if s.storeReads+s.cacheReads != 0 {
			t.Errorf("%d and %d look-ups", s.storeReads, s.cacheReads)
		}
	})
}

func TestNewKeyWorksAtOnceAndIsCached(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, r *KeyResolver, s *stores) {
		secret := s.issue()
		expect(t, r, secret, "")
		pass(pollInterval)
		for range 100 {
			expect(t, r, secret, "")
		}
		if s.storeReads != 1 || s.cacheReads > 2 {
			t.Errorf("%d store and %d cache reads, want 1 and at most 2", s.storeReads, s.cacheReads)
		}
		pass(grantTTL)
		expect(t, r, secret, "")
		if s.storeReads != 1 {
			t.Errorf("%d store reads after grantTTL, want 1: Redis holds it", s.storeReads)
		}
	})
}

// A key that is issued after its secret was tried works within a second.
func TestRefusalIsCachedForASecond(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, r *KeyResolver, s *stores) {
		secret := s.issue()
		s.revoke(secret, false)
		pass(pollInterval)
		for range 50 {
			expect(t, r, secret, fault.Unauthorized)
		}
		if s.storeReads != 1 {
			t.Errorf("%d look-ups of an unknown key within a second, want 1", s.storeReads)
		}
		s.set(func() { s.keys[storekey.Digest(secret)] = storekey.Grant{ConnectionID: "con_1"} })
		pass(negativeTTL)
		expect(t, r, secret, "")
	})
}

func TestRevokedKeyIsRefusedWithinTwoSeconds(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		pushed bool
		cut    func(s *stores)
	}{
		"all is well":                      {true, func(*stores) {}},
		"Redis has not heard":              {false, func(*stores) {}},
		"Redis down":                       {false, func(s *stores) { s.cacheDown = true }},
		"PostgreSQL cut off from the edge": {true, func(s *stores) { s.storeDown = true }},
		"PostgreSQL hangs":                 {true, func(s *stores) { s.storeHangs = true }},
		"Redis forgot everything, version too": {false,
			func(s *stores) {
				s.hasVersion, s.published, s.publishedLog = false, 0, nil
				s.cached = map[Digest]CacheState{}
			}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, func(t *testing.T, r *KeyResolver, s *stores) {
				secret := s.issue()
				pass(pollInterval)
				expect(t, r, secret, "")
				s.set(func() { tc.cut(s) })
				s.revoke(secret, tc.pushed)
				pass(2 * time.Second)
				expect(t, r, secret, fault.Unauthorized)
			})
		})
	}
}

func TestKeysConfirmedByRedisOutliveAnOutageOfPostgreSQL(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, r *KeyResolver, s *stores) {
		secret := s.issue()
		pass(pollInterval)
		expect(t, r, secret, "")
		s.set(func() { s.storeDown = true })
		for range 60 {
			pass(5 * time.Second)
			expect(t, r, secret, "")
		}
		unknown := []byte(storekey.NewSecret())
		expect(t, r, unknown, fault.ServiceUnavailable) // no store can tell
	})
}

func TestKeysConfirmedByPostgreSQLOutliveAnOutageOfRedis(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, r *KeyResolver, s *stores) {
		secret := s.issue()
		s.set(func() { s.cacheDown = true })
		for range 60 {
			pass(5 * time.Second)
			expect(t, r, secret, "")
		}
	})
}

func TestNoKeyWorksWhenBothStoresAreDownForFifteenSeconds(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, r *KeyResolver, s *stores) {
		secret := s.issue()
		pass(pollInterval)
		expect(t, r, secret, "")
		s.set(func() { s.storeDown, s.cacheDown = true, true })
		pass(14 * time.Second) // past grantTTL
		expect(t, r, secret, "")
		pass(2 * time.Second)
		_, err := r.Resolve(t.Context(), secret)
		if f := fault.From(err); f.Code != fault.ServiceUnavailable || f.RetryAfter == 0 {
			t.Fatalf("error %v, want service_unavailable with a RetryAfter", err)
		}
		s.set(func() { s.storeDown = false })
		expect(t, r, secret, "")
	})
}

// A Redis that is behind the version of PostgreSQL is not used, even when PostgreSQL is down since.
func TestRedisBehindPostgreSQLIsNotUsed(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, r *KeyResolver, s *stores) {
		secret := s.issue()
		pass(pollInterval)
		expect(t, r, secret, "")
		s.revoke(secret, false)
		pass(pollInterval)
		s.set(func() { s.storeDown = true })
		expect(t, r, secret, fault.ServiceUnavailable)
	})
}

// A grant that was read before the version changed is not cached after it, and does not overwrite a
// revocation.
func TestOutdatedLookUpIsNotCached(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, r *KeyResolver, s *stores) {
		secret := s.issue()
		pass(pollInterval)
		s.set(func() {
			s.beforeStore = func() {
				s.revoke(secret, true)
				time.Sleep(1500 * time.Millisecond) // the poll sees the change meanwhile
				s.set(func() { s.beforeStore = nil })
			}
		})
		expect(t, r, secret, "") // it was valid when it was read
		expect(t, r, secret, fault.Unauthorized)
		if s.cached[storekey.Digest(secret)] != CacheRevoked {
			t.Error("the late fill overwrote the revocation")
		}
	})
}

func TestPollNow(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, r *KeyResolver, s *stores) {
		secret := s.issue()
		pass(pollInterval)
		expect(t, r, secret, "")
		s.revoke(secret, true)
		r.PollNow()
		pass(hintPause)
		expect(t, r, secret, fault.Unauthorized)
	})
}

func TestOneLoadForManyCallers(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, r *KeyResolver, s *stores) {
		secret := s.issue()
		pass(pollInterval)
		s.set(func() { s.beforeStore = func() { time.Sleep(time.Millisecond) } })
		var wg sync.WaitGroup
		for range 64 {
			wg.Go(func() { expect(t, r, secret, "") })
		}
		wg.Wait()
		if s.storeReads != 1 {
			t.Errorf("%d look-ups, want 1", s.storeReads)
		}
	})
}

func TestPanicInALookUpIsAnError(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, r *KeyResolver, s *stores) {
		secret := s.issue()
		s.set(func() { s.panics = true })
		expect(t, r, secret, fault.ServiceUnavailable)
		if testutil.ToFloat64(r.cfg.Metrics.panics) == 0 {
			t.Error("the panic is not counted")
		}
	})
}

func TestCallerThatGivesUpDoesNotFailTheOthers(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, r *KeyResolver, s *stores) {
		secret := s.issue()
		pass(pollInterval)
		s.set(func() { s.beforeStore = func() { time.Sleep(time.Second) } })
		var wg sync.WaitGroup
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			defer cancel()
			if _, err := r.Resolve(ctx, secret); !fault.Is(err, fault.ServiceUnavailable) {
				t.Errorf("error %v", err)
			}
		})
		time.Sleep(5 * time.Millisecond)
		expect(t, r, secret, "")
		wg.Wait()
	})
}

// A PostgreSQL that hangs delays a key that Redis lost, but memory holds, by staleWait, and a key that no
// copy holds by storeTimeout. Once that is known, nothing waits.
func TestHangingStore(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, r *KeyResolver, s *stores) {
		held, lost := s.issue(), s.issue()
		pass(pollInterval)
		expect(t, r, held, "")
		expect(t, r, lost, "")
		s.set(func() {
			s.storeHangs = true
			delete(s.cached, storekey.Digest(lost))
		})
		took := func(secret []byte, code fault.Code, want time.Duration) {
			t.Helper()
			began := time.Now()
			expect(t, r, secret, code)
			if got := time.Since(began); got != want {
				t.Errorf("it took %s, want %s", got, want)
			}
		}
		pass(grantTTL)
		took(held, "", 0) // Redis answers
		took(lost, "", staleWait)
		pass(storeTimeout)
		took(lost, "", 0)
		took([]byte(storekey.NewSecret()), fault.ServiceUnavailable, 0)
		pass(storePause)
		took([]byte(storekey.NewSecret()), fault.ServiceUnavailable, storeTimeout)
		took([]byte(storekey.NewSecret()), fault.ServiceUnavailable, 0)
		s.set(func() { s.storeHangs = false })
		pass(storePause)
		took([]byte(storekey.NewSecret()), fault.Unauthorized, 0)
		took(lost, "", 0)
	})
}

func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	r := New(Config{Now: time.Now, Metrics: NewMetrics(prometheus.NewRegistry())})
	r.grants.Resize(10)
	r.negativeCache.Resize(5)
	for i := range 100 {
		r.remember(Digest{byte(i)}, storekey.Grant{}, stamp{}, r.cfg.Metrics.store)
		_ = r.rememberRefusal(Digest{1, byte(i)}, stamp{}, r.cfg.Metrics.store)
	}
	if r.grants.Len() != 10 || r.negativeCache.Len() != 5 {
		t.Errorf("%d and %d entries", r.grants.Len(), r.negativeCache.Len())
	}
	if _, ok := r.grants.Get(Digest{99}); !ok {
		t.Error("the newest entry is gone")
	}
}
