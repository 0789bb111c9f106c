package ratelimit

import (
	"fmt"
	"net/netip"
	"testing"
	"time"
)

// wait is the time until an address may fail again.
func wait(l *Limiter, a netip.Addr) time.Duration {
	return l.Charge(Subject{Address: a}, 0).Address.Wait
}

// A limiter of addresses alone counts failures.
func TestFailures(t *testing.T) {
	t.Parallel()
	c := &clock{at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	f := New(Config{PerAddress: Quota{PerSecond: 10, Burst: 2}, Now: c.now})
	guesser, other := netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8:0:1::1")
	for i, want := range []time.Duration{0, 0, 100 * time.Millisecond, 200 * time.Millisecond} {
		if got := wait(f, guesser); got != want {
			t.Errorf("after %d failures: %s, want %s", i, got, want)
		}
		f.Charge(Subject{Address: guesser}, 1)
	}
	if neighbour := netip.MustParseAddr("2001:db8::2"); wait(f, neighbour) == 0 {
		t.Error("another address of the same /64 may fail again")
	}
	if wait(f, other) != 0 {
		t.Error("another network has to wait")
	}
	c.at = c.at.Add(300 * time.Millisecond)
	if wait(f, guesser) != 0 {
		t.Error("it may not go on after the wait")
	}
}

func TestFailuresOff(t *testing.T) {
	t.Parallel()
	f := New(Config{})
	for range 1000 {
		f.Charge(Subject{Address: netip.Addr{}}, 1)
	}
	if wait(f, netip.Addr{}) != 0 {
		t.Error("it counts")
	}
}

func TestFailuresAreBounded(t *testing.T) {
	t.Parallel()
	c := &clock{at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	f := New(Config{PerAddress: Quota{PerSecond: 1, Burst: 2}, MaxBuckets: 4 * shardCount, Now: c.now})
	for i := range 5000 {
		f.Charge(Subject{Address: netip.MustParseAddr(fmt.Sprintf("10.0.%d.%d", i/250, i%250))}, 1)
	}
	for i := range f.shards {
		if n := len(f.shards[i].clients.buckets); n > 4 {
			t.Fatalf("%d buckets", n)
		}
	}
}
