package access

import (
	"testing"
	"time"

	"storefront.internal/shared/storekey"
)

// Known answers from memory and Redis, and never asks PostgreSQL.
func TestKnown(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, r *KeyResolver, s *stores) {
		known := func(secret []byte, want bool, when string) {
			t.Helper()
			reads := s.storeReads
			grant, ok := r.Known(t.Context(), secret)
			if ok != want || ok && grant.ConnectionID != "con_1" {
				t.Errorf("%s: %+v %t", when, grant, ok)
			}
			if s.storeReads != reads {
				t.Errorf("%s: PostgreSQL was asked", when)
			}
		}
		secret, other := s.issue(), s.issue()
		pass(pollInterval)
		known(secret, false, "a key that was never presented")
		expect(t, r, secret, "")
		known(secret, true, "a key in memory")
		pass(grantTTL)
		known(secret, true, "a key past its time in memory, which Redis holds")
		s.set(func() { s.cached[storekey.Digest(other)] = CacheGranted })
		known(other, true, "a key that only Redis holds")
		pass(grantTTL)
		s.set(func() { s.cacheDown = true })
		known(secret, true, "a key past its time in memory, while Redis is down")
		known([]byte(storekey.NewSecret()), false, "an unknown key, while Redis is down")
		s.set(func() { s.cacheDown = false })
		s.revoke(secret, true)
		known(secret, false, "a revoked key")
		pass(2 * time.Second)
		known(secret, false, "a revoked key, later")
		known(other, true, "another key, after the version changed")
	})
}

// What Known asks Redis is bounded, and malformed keys ask nothing.
func TestKnownIsBounded(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, r *KeyResolver, s *stores) {
		secret := s.issue()
		pass(pollInterval)
		expect(t, r, secret, "")
		reads := s.cacheReads
		if _, ok := r.Known(t.Context(), []byte("spk_malformed")); ok {
			t.Error("a malformed key is known")
		}
		for range maxConfirmations {
			r.confirmations <- struct{}{}
		}
		if _, ok := r.Known(t.Context(), []byte(storekey.NewSecret())); ok || s.cacheReads != reads {
			t.Errorf("%t, %d look-ups", ok, s.cacheReads-reads)
		}
		if _, ok := r.Known(t.Context(), secret); !ok {
			t.Error("a key in memory is not known")
		}
	})
}

// A key that is used stays in memory.
func TestUsedKeyDoesNotLapse(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, r *KeyResolver, s *stores) {
		secret := s.issue()
		pass(pollInterval)
		expect(t, r, secret, "")
		began := s.cacheReads
		for second := range 60 {
			pass(time.Second)
			if _, ok := r.cached(storekey.Digest(secret)); !ok {
				t.Fatalf("forgotten after %d seconds", second+1)
			}
		}
		if reads := s.cacheReads - began; reads > 60/int((grantTTL-refreshAhead)/time.Second) {
			t.Errorf("%d look-ups", reads)
		}
		s.revoke(secret, false)
		s.set(func() { delete(s.cached, storekey.Digest(secret)) })
		pass(2 * time.Second)
		expect(t, r, secret, "unauthorized")
	})
}

// While no store answers, a used key is looked up again once a second at most.
func TestRefreshPauses(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, r *KeyResolver, s *stores) {
		secret := s.issue()
		pass(pollInterval)
		expect(t, r, secret, "")
		s.set(func() { s.cacheDown, s.storeDown = true, true })
		before := s.storeReads
		for range 95 { // until shortly before the end
			pass(100 * time.Millisecond)
			expect(t, r, secret, "")
		}
		if n := s.storeReads - before; n < 2 || n > int(refreshAhead/refreshPause)+1 {
			t.Errorf("%d look-ups", n)
		}
	})
}
