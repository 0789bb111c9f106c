package intake_test

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestLedger: which signals are looked up in the ledger, and what is answered.
func TestLedger(t *testing.T) {
	errDown := errors.New("down")
	f := func(name string, asked int, set func(b *fixture), at time.Duration, want string) {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t)
			expect(t, b.send(t, time.Now(), "sig_1"), "sig_1:accepted") // stored
			b.redis.FlushAll()
			_ = b.redis.Connect(nil).StartEpoch(t.Context(), nil, false)
			b.redis.AgeEpoch(48 * time.Hour) // the claims are expired, and Redis lost nothing
			set(b)
			expect(t, b.send(t, time.Now().Add(at), "sig_1", "sig_2"), want)
			if b.ledger.Asked != asked {
				t.Errorf("asked %d times, want %d", b.ledger.Asked, asked)
			}
		})
	}
	const known, unknown, unavailable = "sig_1:duplicate sig_2:accepted", "sig_1:accepted sig_2:accepted",
		"signals_unavailable"
	nothing := func(*fixture) {}
	down := func(b *fixture) { b.ledger.Err = errDown }
	// the documented exception: resent after ClaimTTL with a wrong clock
	f("recent", 0, nothing, -29*time.Minute, unknown)
	f("a little ahead", 0, nothing, 30*time.Second, unknown)
	f("old", 1, nothing, -31*time.Minute, known)
	f("very old", 1, nothing, -10*365*24*time.Hour, known)
	f("ahead", 1, nothing, time.Hour, known)
	f("old and ledger down", 1, down, -time.Hour, unknown)
	flushed := func(b *fixture) {
		b.redis.FlushAll()
		_ = b.redis.Connect(nil).StartEpoch(context.Background(), nil, false)
	}
	f("recently lost", 1, flushed, 0, known)
	f("recently lost and ledger down", 1, func(b *fixture) { flushed(b); down(b) }, 0, unavailable)
	f("no epoch", 1, func(b *fixture) { b.redis.FlushAll(); b.ledger.Recent = true }, 0, known)
	f("no epoch and nothing stored", 0, func(b *fixture) { b.redis.FlushAll() }, 0, unknown)
	f("no epoch and ledger down", 1,
		func(b *fixture) { b.redis.FlushAll(); b.ledger.Recent = true; down(b) }, 0, unavailable)
}

// TestLedgerKnowsAll: nothing is new, so nothing is sent; the attempt is done, and Redis answers the next
// request.
func TestLedgerKnowsAll(t *testing.T) {
	b := newFixture(t)
	at := time.Now().Add(-2 * time.Hour)
	expect(t, b.send(t, at, "sig_1"), "sig_1:accepted")
	b.redis.FlushAll()
	b.ledger.Recent = true
	expect(t, b.send(t, at, "sig_1"), "sig_1:duplicate")
	asked := b.ledger.Asked
	expect(t, b.send(t, at, "sig_1"), "sig_1:duplicate")
	if b.ledger.Asked != asked || len(b.records) != 1 {
		t.Errorf("asked %d more times, %d records", b.ledger.Asked-asked, len(b.records))
	}
}
