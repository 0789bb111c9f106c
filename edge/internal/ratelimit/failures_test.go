package ratelimit

import (
	"fmt"
	"net/netip"
	"testing"
	"time"
)

func TestFailures(t *testing.T) {
	t.Parallel()
	c := &clock{at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	f := NewFailures(Quota{PerSecond: 10, Burst: 2}, c.now)
	guesser, other := netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8:0:1::1")
	for i, want := range []time.Duration{0, 0, 100 * time.Millisecond, 200 * time.Millisecond} {
		if got := f.Wait(guesser); got != want {
			t.Errorf("after %d failures: %s, want %s", i, got, want)
		}
		f.Note(guesser)
	}
	if neighbour := netip.MustParseAddr("2001:db8::2"); f.Wait(neighbour) == 0 {
		t.Error("another address of the same /64 may go on")
	}
	if f.Wait(other) != 0 {
		t.Error("another network has to wait")
	}
	c.at = c.at.Add(300 * time.Millisecond)
	if f.Wait(guesser) != 0 {
		t.Error("it may not go on after the wait")
	}
}

func TestFailuresOff(t *testing.T) {
	t.Parallel()
	f := NewFailures(Quota{}, time.Now)
	for range 1000 {
		f.Note(netip.Addr{})
	}
	if f.Wait(netip.Addr{}) != 0 {
		t.Error("it counts")
	}
}

func TestFailuresAreBounded(t *testing.T) {
	t.Parallel()
	c := &clock{at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	f := NewFailures(Quota{PerSecond: 1, Burst: 2}, c.now)
	for i := range f.shards {
		f.shards[i].max = 4
	}
	for i := range 5000 {
		f.Note(netip.MustParseAddr(fmt.Sprintf("10.0.%d.%d", i/250, i%250)))
	}
	for i := range f.shards {
		if n := len(f.shards[i].buckets); n > 4 {
			t.Fatalf("%d buckets", n)
		}
	}
}
