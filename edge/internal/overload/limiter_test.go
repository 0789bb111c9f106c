package overload

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// requests is a set of requests of a bubble: each acquires a permit, works for a while, and releases it.
type requests struct {
	limiter *Limiter
	all     sync.WaitGroup
	mu      sync.Mutex
	began   []string          // names, in the order in which the permits were granted
	ended   map[string]Reason // "" for those that got a permit
}

func newRequests(c Config) *requests { return &requests{limiter: New(c), ended: map[string]Reason{}} }

// send sends a request and waits until it is in flight, waits for a permit, or is refused.
func (r *requests) send(name string, priority Priority, bytes int, work time.Duration) {
	r.all.Go(func() {
		permit, reason, ok := r.limiter.Acquire(context.Background(), bytes,
			func() Priority { return priority })
		r.mu.Lock()
		r.ended[name] = reason
		if ok {
			r.began = append(r.began, name)
		}
		r.mu.Unlock()
		if ok {
			time.Sleep(work)
			r.limiter.Release(permit)
		}
	})
	synctest.Wait()
}

func (r *requests) expect(t *testing.T, want map[string]Reason) {
	t.Helper()
	r.all.Wait()
	for name, reason := range want {
		if r.ended[name] != reason {
			t.Errorf("%s: %q, want %q", name, r.ended[name], reason)
		}
	}
	if s := r.limiter.State(); s != (State{}) {
		t.Errorf("%+v is left", s)
	}
}

func TestHighestPriorityFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRequests(Config{MaxInFlight: 1, MaxWaiting: 8, MaxWait: time.Minute})
		r.send("first", Sheddable, 0, time.Second)
		r.send("impressions", Sheddable, 0, time.Second)
		r.send("recommendation", Normal, 0, time.Second)
		r.send("purchase", Critical, 0, time.Second)
		r.send("cart", Critical, 0, time.Second)
		if s := r.limiter.State(); s != (State{InFlight: 1, Waiting: 4}) {
			t.Errorf("%+v", s)
		}
		r.expect(t, nil)
		if want := []string{"first", "purchase", "cart", "recommendation",
			"impressions"}; !slices.Equal(r.began, want) {
			t.Errorf("%v, want %v", r.began, want)
		}
	})
}

// A queue that is full for the lower priorities still takes the higher ones.
func TestShareOfTheQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRequests(Config{MaxInFlight: 1, MaxWaiting: 4, MaxWait: time.Minute})
		r.send("first", Critical, 0, time.Second)
		r.send("older impressions", Sheddable, 0, time.Second)
		r.send("younger impressions", Sheddable, 0, time.Second)
		r.send("one more", Sheddable, 0, time.Second)
		r.send("click", Normal, 0, time.Second)
		r.send("late click", Normal, 0, time.Second)
		r.send("purchase", Critical, 0, time.Second)
		r.send("late purchase", Critical, 0, time.Second)
		r.expect(t, map[string]Reason{"first": "", "older impressions": "", "younger impressions": "",
			"one more": QueueFull,
			"click":    "", "late click": QueueFull, "purchase": "", "late purchase": QueueFull})
	})
}

func TestMaxWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRequests(Config{MaxInFlight: 1, MaxWaiting: 8, MaxWait: 50 * time.Millisecond})
		r.send("slow", Critical, 0, 4*time.Second)
		r.send("waiter", Critical, 0, 0)
		time.Sleep(50*time.Millisecond - 1)
		if synctest.Wait(); r.limiter.State().Waiting != 1 {
			t.Error("it gave up too early")
		}
		time.Sleep(time.Nanosecond)
		if synctest.Wait(); r.limiter.State().Waiting != 0 {
			t.Error("it still waits")
		}
		r.expect(t, map[string]Reason{"slow": "", "waiter": TimedOut})
	})
}

// The deadline of the request counts where it is nearer than MaxWait.
func TestDeadlineOfTheRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limiter := New(Config{MaxInFlight: 1, MaxWait: time.Minute})
		critical := func() Priority { return Critical }
		permit, _, ok := limiter.Acquire(t.Context(), 0, critical)
		if !ok {
			t.Fatal("no permit is free from the start")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if _, reason, ok := limiter.Acquire(ctx, 0, critical); ok || reason != TimedOut ||
			time.Since(began) != time.Second {
			t.Errorf("%t %q after %s", ok, reason, time.Since(began))
		}
		limiter.Release(permit)
	})
}

func TestBytes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRequests(Config{MaxInFlight: 8, MaxBytes: 100})
		r.send("all of it", Sheddable, 100, time.Second)
		r.send("one more", Critical, 1, time.Second)
		r.all.Wait()
		r.send("three quarters", Sheddable, 75, time.Second)
		r.send("impressions", Sheddable, 1, time.Second)
		r.send("click", Normal, 1, time.Second)
		r.send("purchase", Critical, 25, time.Second)
		r.send("too much", Critical, 1, time.Second)
		r.expect(t, map[string]Reason{"all of it": "", "one more": BodyBytes, "three quarters": "",
			"impressions": BodyBytes,
			"click":       BodyBytes, "purchase": "", "too much": BodyBytes})
	})
}

// Many requests that come and give up at random: never more in flight than allowed, and nothing is left at
// the end.
func TestNothingIsLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const most = 4
		limiter := New(Config{MaxInFlight: most, MaxWaiting: 6, MaxBytes: 1000,
			MaxWait: 3 * time.Millisecond})
		random := rand.New(rand.NewPCG(1, 2))
		var working, worked, refused atomic.Int64
		var all sync.WaitGroup
		for range 20_000 {
			priority, bytes, work := Priority(random.IntN(priorities)), random.IntN(400),
				time.Duration(random.IntN(2000))*time.Microsecond
			time.Sleep(time.Duration(random.IntN(300)) * time.Microsecond)
			all.Go(func() {
				permit, _, ok := limiter.Acquire(t.Context(), bytes, func() Priority { return priority })
				if !ok {
					refused.Add(1)
					return
				}
				if n := working.Add(1); n > most {
					t.Errorf("%d in flight", n)
				}
				time.Sleep(work)
				working.Add(-1)
				worked.Add(1)
				limiter.Release(permit)
			})
		}
		all.Wait()
		if s := limiter.State(); s != (State{}) {
			t.Errorf("%+v is left", s)
		}
		if worked.Load() < 1000 || refused.Load() < 1000 {
			t.Errorf("%d permits, %d refusals: the test exercises too little", worked.Load(), refused.Load())
		}
	})
}

func TestPriorityOfBatch(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]Priority{
		`{"signals":[{"type":"impression"},{"type":"impression"}]}`:         Sheddable,
		`{"signals":[{"type":"impression"},{"type":"click"}]}`:              Normal,
		`{"signals":[{"type":"dismiss"}]}`:                                  Normal,
		`{"signals":[{"type":"impression"},{"type" : "purchase"}]}`:         Critical,
		`{"signals":[{"type":"add_to_cart"},{"type":"click"}]}`:             Critical,
		`{"signals":[{"type":"remove_from_cart"}]}`:                         Critical,
		`{"signals":[{"type":"update_quantity"}]}`:                          Critical,
		"{\"signals\":[{\"type\"\n:\t\"purchase\"":                          Critical,
		`{"signals":[{"type":"impression","client":{"page_url":"/purchase"`: Sheddable,
		`{"signals":[]}`: Normal,
		``:               Normal,
	} {
		if got := PriorityOfBatch([]byte(body)); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
}

func BenchmarkPriorityOfBatch(b *testing.B) {
	const impression = `{"signal_id":"sig_0123456789abcdef0123456789abcdef","type":"impression",` +
		`"occurred_at":"2026-01-02T03:04:05.678Z","decision_id":"dec_0123456789abcdef0123456789abcdef"},`
	body := []byte(`{"signals":[` + strings.Repeat(impression, 10) + `{}]}`)
	for b.Loop() {
		PriorityOfBatch(body)
	}
}

func BenchmarkAcquire(b *testing.B) {
	limiter := New(Config{})
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			permit, _, _ := limiter.Acquire(context.Background(), 100, nil)
			limiter.Release(permit)
		}
	})
}
