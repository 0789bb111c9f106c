package ratelimit

import (
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
	"storefront.internal/shared/ident"
)

// clock is a clock that the test sets.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func newLimiter(perKey, perAddress Quota, maxBuckets int) (*Limiter, *clock) {
	c := &clock{at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	return New(Config{PerKey: perKey, PerAddress: perAddress, MaxBuckets: maxBuckets, Now: c.now}), c
}

func subject(key, address string) Subject {
	return Subject{Key: ident.KeyID(key), Address: netip.MustParseAddr(address)}
}

func TestBurstThenRefill(t *testing.T) {
	t.Parallel()
	l, c := newLimiter(Quota{1000, 1000}, Quota{2, 3}, 0)
	s := subject("key_a", "192.0.2.1")
	for i := range 3 {
		if v := l.Allow(s); !v.Allowed || v.Address.Remaining != 2-i {
			t.Fatalf("request %d: %+v, want allowed with %d left", i, v, 2-i)
		}
	}
	v := l.Allow(s)
	if v.Allowed || v.RetryAfter != 500*time.Millisecond || v.RetrySeconds() != 1 {
		t.Fatalf("fourth request: %+v, want refused for 500ms", v)
	}
	if v.Key.Remaining != 997 {
		t.Errorf("a refused request took a token of the key's bucket: %d left", v.Key.Remaining)
	}
	c.at = c.at.Add(500 * time.Millisecond)
	if v := l.Allow(s); !v.Allowed {
		t.Errorf("after the wait: %+v, want allowed", v)
	}
}

func TestChargeMayGoBelowZeroByABatch(t *testing.T) {
	t.Parallel()
	l, c := newLimiter(Quota{10, 10}, Quota{1000, 1000}, 0)
	s := subject("key_a", "192.0.2.1")
	if v := l.Allow(s); !v.Allowed {
		t.Fatalf("%+v", v)
	}
	v := l.Charge(s, 49) // 50 of 10: forty below zero
	if v.Key.Remaining != 0 || v.Key.Full != 5*time.Second {
		t.Fatalf("after the batch: %+v", v)
	}
	if v := l.Allow(s); v.Allowed || v.RetryAfter != 4100*time.Millisecond || v.RetrySeconds() != 5 {
		t.Fatalf("%+v, want refused for 4.1s", v)
	}
	c.at = c.at.Add(4100 * time.Millisecond)
	if v := l.Allow(s); !v.Allowed {
		t.Errorf("%+v, want allowed", v)
	}
}

func TestAddressesOfOneKeyAreApart(t *testing.T) {
	t.Parallel()
	l, _ := newLimiter(Quota{1000, 1000}, Quota{1, 1}, 0)
	for _, tc := range []struct {
		address string
		allowed bool
	}{
		{"192.0.2.1", true}, {"192.0.2.1", false}, {"::ffff:192.0.2.1", false}, {"192.0.2.2", true},
		{"2001:db8:0:1::1", true}, {"2001:db8:0:1:ffff::2", false}, {"2001:db8:0:2::1", true},
	} {
		if v := l.Allow(subject("key_a", tc.address)); v.Allowed != tc.allowed {
			t.Errorf("%s: allowed %t, want %t", tc.address, v.Allowed, tc.allowed)
		}
	}
	if v := l.Allow(subject("key_b", "192.0.2.1")); !v.Allowed {
		t.Error("another key of the same address was refused")
	}
	if v := l.Allow(Subject{Key: "key_a"}); !v.Allowed {
		t.Error("no address: the first request was refused")
	}
}

func TestBucketsAreBounded(t *testing.T) {
	t.Parallel()
	l, c := newLimiter(Quota{1e6, 1e6}, Quota{1, 10}, 64*shardCount)
	heavy := subject("key_a", "203.0.113.9")
	for range 10 {
		l.Allow(heavy)
	}
	for i := range 5000 {
		l.Allow(subject("key_a", fmt.Sprintf("10.0.%d.%d", i/250, i%250)))
	}
	if n := l.size(); n > 64*shardCount {
		t.Fatalf("%d buckets", n)
	}
	if v := l.Allow(heavy); v.Allowed {
		t.Error("the debt of the heaviest client was forgotten")
	}
	c.at = c.at.Add(time.Hour)
	for i := range 5000 {
		l.Allow(subject("key_a", fmt.Sprintf("10.1.%d.%d", i/250, i%250)))
	}
	if n := l.size(); n > 64*shardCount {
		t.Fatalf("%d buckets", n)
	}
}

func (l *Limiter) size() (n int) {
	for i := range l.shards {
		l.shards[i].mu.Lock()
		n += len(l.shards[i].clients.buckets)
		l.shards[i].mu.Unlock()
	}
	return n
}

func TestFields(t *testing.T) {
	t.Parallel()
	l, _ := newLimiter(Quota{500, 2000}, Quota{50, 200}, 0)
	if got, want := l.Policy(), `"key";q=2000;w=4, "address";q=200;w=4`; got != want {
		t.Errorf("policy %s, want %s", got, want)
	}
	s := subject("key_a", "192.0.2.1")
	l.Allow(s)
	if got, want := string(l.Charge(s, 49).AppendState(nil)),
		`"key";r=1950;t=1, "address";r=150;t=1`; got != want {
		t.Errorf("state %s, want %s", got, want)
	}
}

func TestShare(t *testing.T) {
	t.Parallel()
	if got, want := (Quota{100, 10}).Share(4), (Quota{25, 3}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got, want := (Quota{1, 1}).Share(3), (Quota{1. / 3, 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestConcurrentUseAdmitsExactlyTheBurst(t *testing.T) {
	t.Parallel()
	l, _ := newLimiter(Quota{1, 1000}, Quota{1, 100}, 0)
	var wg sync.WaitGroup
	var mu sync.Mutex
	admitted := 0
	for range 8 {
		wg.Go(func() {
			for range 50 {
				if l.Allow(subject("key_a", "192.0.2.1")).Allowed {
					mu.Lock()
					admitted++
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	if admitted != 100 {
		t.Errorf("%d admitted, want 100", admitted)
	}
}

// A token bucket that counts tokens answers the same.
func TestAgainstPlainBucket(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		q := Quota{PerSecond: float64(rapid.SampledFrom([]int{1, 2, 4, 10, 100, 1000}).Draw(t, "rate")),
			Burst: rapid.IntRange(1, 100).Draw(t, "burst")}
		l, c := newLimiter(Quota{1e6, 1e6}, q, 0)
		tokens := float64(q.Burst)
		s := subject("key_a", "192.0.2.1")
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			step := time.Duration(rapid.IntRange(0, 4000).Draw(t, "ms")) * time.Millisecond
			c.at = c.at.Add(step)
			tokens = min(float64(q.Burst), tokens+step.Seconds()*q.PerSecond)
			want := tokens >= 1-1e-6
			if got := l.Allow(s).Allowed; got != want {
				t.Fatalf("allowed %t with %.6f tokens", got, tokens)
			}
			if want {
				n := rapid.IntRange(0, 49).Draw(t, "charge")
				tokens -= 1 + float64(n)
				l.Charge(s, n)
			}
		}
	})
}

// A request that waits for the lock is charged at the time at which it got the lock.
func TestWaitingForTheLockIsNoDebt(t *testing.T) {
	t.Parallel()
	locked := func(sh *shard) bool {
		if sh.mu.TryLock() {
			sh.mu.Unlock()
			return false
		}
		return true
	}
	var l *Limiter
	asked, behind := 0, true
	l = New(Config{PerKey: Quota{1, 1}, PerAddress: Quota{1, 1}, Now: func() time.Time {
		asked++
		held := false
		for i := range l.shards {
			held = held || locked(&l.shards[i])
		}
		behind = behind && held
		return time.Unix(1_800_000_000, 0)
	}})
	l.Allow(subject("key_a", "192.0.2.1"))
	l.Charge(subject("key_a", "192.0.2.1"), 1)
	if asked != 2 || !behind {
		t.Errorf("the time was asked for %d times, under the lock: %t", asked, behind)
	}
}

// A /48 has 65,536 networks, and gets what eight clients get.
func TestNetworksOfASiteShareABucket(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]func(l *Limiter, address string) bool{
		"a key": func(l *Limiter, address string) bool { return l.Allow(subject("key_a", address)).Allowed },
		"failures": func(l *Limiter, address string) bool {
			s := Subject{Address: netip.MustParseAddr(address)}
			defer l.Charge(s, 1)
			return l.Charge(s, 0).Address.Wait == 0
		},
	} {
		l, c := newLimiter(Quota{1e6, 1e6}, Quota{10, 10}, 0)
		admitted := 0
		for i := range 1000 {
			if of(l, fmt.Sprintf("2001:db8:7:%x::1", i)) {
				admitted++
			}
		}
		if admitted != 80 {
			t.Errorf("%s: a /48 got %d requests through, want 80", name, admitted)
		}
		if !of(l, "2001:db8:8::1") || !of(l, "192.0.2.1") {
			t.Errorf("%s: another site is refused", name)
		}
		c.at = c.at.Add(time.Hour)
		if !of(l, "2001:db8:7:1::1") {
			t.Errorf("%s: the site is refused an hour later", name)
		}
	}
	l, _ := newLimiter(Quota{1e6, 1e6}, Quota{10, 10}, 0)
	for i := range 80 {
		l.Allow(subject("key_a", fmt.Sprintf("2001:db8:7:%x::1", i)))
	}
	v := l.Allow(subject("key_a", "2001:db8:7:ffff::1"))
	if v.Allowed || v.Address.Remaining != 0 || v.RetryAfter <= 0 {
		t.Errorf("a new network of a site without tokens: %+v", v)
	}
}

// However many clients a key has, its own bucket is not forgotten.
func TestClientsDoNotPushOutAKey(t *testing.T) {
	t.Parallel()
	l, _ := newLimiter(Quota{6000, 6000}, Quota{1, 10}, 64*shardCount)
	for i := range 6000 {
		a := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
		for range 2 {
			l.Allow(Subject{Key: "key_a", Address: a})
		}
	}
	if v := l.Allow(subject("key_a", "192.0.2.1")); v.Allowed {
		t.Errorf("the key's debt was forgotten: %+v", v)
	}
}
