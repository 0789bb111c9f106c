package intake_test

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestLedger: who asks it, and what it answers.
func TestLedger(t *testing.T) {
	errDown := errors.New("down")
	f := func(name string, asked int, set func(b *bench), at time.Duration, want string) {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			expect(t, b.send(t, time.Now(), "sig_1"), "sig_1:accepted") // stored
			warm := func() { b.memory.AgeEpoch(48 * time.Hour) }
			b.memory.Forget()
			_ = b.memory.Connect(nil).MarkEpoch(t.Context(), nil, false)
			warm() // the claims' life is over, Redis was never lost
			set(b)
			expect(t, b.send(t, time.Now().Add(at), "sig_1", "sig_2"), want)
			if b.ledger.Asked != asked {
				t.Errorf("asked %d times, want %d", b.ledger.Asked, asked)
			}
		})
	}
	const known, unknown, unavailable = "sig_1:duplicate sig_2:accepted", "sig_1:accepted sig_2:accepted", "signals_unavailable"
	nothing := func(*bench) {}
	down := func(b *bench) { b.ledger.Err = errDown }
	f("recent", 0, nothing, -29*time.Minute, unknown) // the published remainder: resent after the claim's life with a wrong clock
	f("a little ahead", 0, nothing, 30*time.Second, unknown)
	f("old", 1, nothing, -31*time.Minute, known)
	f("very old", 1, nothing, -10*365*24*time.Hour, known)
	f("ahead", 1, nothing, time.Hour, known)
	f("old and ledger down", 1, down, -time.Hour, unknown)
	cold := func(b *bench) {
		b.memory.Forget()
		_ = b.memory.Connect(nil).MarkEpoch(context.Background(), nil, false)
	}
	f("cold", 1, cold, 0, known)
	f("cold and ledger down", 1, func(b *bench) { cold(b); down(b) }, 0, unavailable)
	f("unmarked", 1, func(b *bench) { b.memory.Forget(); b.ledger.Recent = true }, 0, known)
	f("unmarked and nothing stored", 0, func(b *bench) { b.memory.Forget() }, 0, unknown)
	f("unmarked and ledger down", 1, func(b *bench) { b.memory.Forget(); b.ledger.Recent = true; down(b) }, 0, unavailable)
}

// TestLedgerKnowsAll: nothing is new, so nothing is sent; the attempt is done, and the next one hears it from Redis.
func TestLedgerKnowsAll(t *testing.T) {
	b := newBench(t)
	at := time.Now().Add(-2 * time.Hour)
	expect(t, b.send(t, at, "sig_1"), "sig_1:accepted")
	b.memory.Forget()
	b.ledger.Recent = true
	expect(t, b.send(t, at, "sig_1"), "sig_1:duplicate")
	asked := b.ledger.Asked
	expect(t, b.send(t, at, "sig_1"), "sig_1:duplicate")
	if b.ledger.Asked != asked || len(b.records) != 1 {
		t.Errorf("asked %d more times, %d records", b.ledger.Asked-asked, len(b.records))
	}
}
