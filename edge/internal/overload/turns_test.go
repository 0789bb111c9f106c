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

// line is a set of requests of a bubble: each enters, works for a while, and leaves.
type line struct {
	turns *Turns
	all   sync.WaitGroup
	mu    sync.Mutex
	began []string          // names, in the order in which their turns came
	ended map[string]Reason // "" for those that worked
}

func newLine(c Config) *line { return &line{turns: New(c), ended: map[string]Reason{}} }

// enter lets a request come and waits until it works, waits, or is refused.
func (l *line) enter(name string, class Class, bytes int, work time.Duration) {
	l.all.Go(func() {
		turn, reason, ok := l.turns.Enter(context.Background(), bytes, func() Class { return class })
		l.mu.Lock()
		l.ended[name] = reason
		if ok {
			l.began = append(l.began, name)
		}
		l.mu.Unlock()
		if ok {
			time.Sleep(work)
			l.turns.Leave(turn)
		}
	})
	synctest.Wait()
}

func TestTheDearestTurnComesFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLine(Config{MaxInFlight: 1, MaxWaiting: 8, Patience: time.Minute})
		l.enter("working", Impressions, 0, time.Second)
		l.enter("impressions", Impressions, 0, time.Second)
		l.enter("recommendation", Ordinary, 0, time.Second)
		l.enter("purchase", Sales, 0, time.Second)
		l.enter("cart", Sales, 0, time.Second)
		if s := l.turns.State(); s != (State{Working: 1, Waiting: 4}) {
			t.Errorf("%+v", s)
		}
		l.all.Wait()
		if want := []string{"working", "purchase", "cart", "recommendation", "impressions"}; !slices.Equal(l.began, want) {
			t.Errorf("%v, want %v", l.began, want)
		}
		if s := l.turns.State(); s != (State{}) {
			t.Errorf("%+v is left", s)
		}
	})
}

func TestAFullQueueGivesUpTheCheapest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLine(Config{MaxInFlight: 1, MaxWaiting: 2, Patience: time.Minute})
		l.enter("working", Sales, 0, time.Second)
		l.enter("older", Impressions, 0, time.Second)
		l.enter("younger", Impressions, 0, time.Second)
		l.enter("one more", Impressions, 0, time.Second)
		l.enter("click", Ordinary, 0, time.Second)
		l.enter("purchase", Sales, 0, time.Second)
		l.enter("late click", Ordinary, 0, time.Second)
		l.enter("another purchase", Sales, 0, time.Second)
		l.enter("a third", Sales, 0, time.Second)
		l.all.Wait()
		want := map[string]Reason{"working": "", "one more": QueueFull, "younger": Displaced, "older": Displaced, "late click": QueueFull,
			"click": Displaced, "purchase": "", "another purchase": "", "a third": QueueFull}
		for name, reason := range want {
			if l.ended[name] != reason {
				t.Errorf("%s: %q, want %q", name, l.ended[name], reason)
			}
		}
	})
}

// Nobody is left in doubt for longer than the patience, and who would be is told at once.
func TestRefusalsAreEarly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLine(Config{MaxInFlight: 1, MaxWaiting: 8, Patience: 50 * time.Millisecond})
		began := time.Now()
		l.enter("stalled", Sales, 0, 4*time.Second)
		l.enter("hopeful", Sales, 0, 0) // nothing is known of the pace yet
		time.Sleep(50*time.Millisecond - 1)
		if synctest.Wait(); l.turns.State().Waiting != 1 {
			t.Error("it gave up too early")
		}
		time.Sleep(time.Nanosecond)
		if synctest.Wait(); l.ended["hopeful"] != Waited {
			t.Errorf("after %s: %q", time.Since(began), l.ended["hopeful"])
		}
		l.all.Wait() // the mean is 4 s / 32 = 125 ms now
		l.enter("again", Sales, 0, time.Millisecond)
		at := time.Now()
		l.enter("late", Sales, 0, 0)
		if l.ended["late"] != WaitTooLong || !time.Now().Equal(at) {
			t.Errorf("after %s: %q", time.Since(at), l.ended["late"])
		}
		l.all.Wait()
	})
}

// The deadline of the request counts where it is nearer than the patience.
func TestDeadlineOfTheRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		turns := New(Config{MaxInFlight: 1, Patience: time.Minute})
		class := func() Class { return Sales }
		turn, _, ok := turns.Enter(t.Context(), 0, class)
		if !ok {
			t.Fatal("full from the start")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if _, reason, ok := turns.Enter(ctx, 0, class); ok || reason != Waited || time.Since(began) != time.Second {
			t.Errorf("%t %q after %s", ok, reason, time.Since(began))
		}
		turns.Leave(turn)
	})
}

func TestBytes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLine(Config{MaxInFlight: 8, MaxBytes: 100})
		l.enter("all of it", Impressions, 100, time.Second)
		l.enter("one more", Sales, 1, time.Second)
		l.all.Wait()
		l.enter("three quarters", Impressions, 75, time.Second)
		l.enter("impressions", Impressions, 1, time.Second)
		l.enter("click", Ordinary, 1, time.Second)
		l.enter("purchase", Sales, 25, time.Second)
		l.enter("too much", Sales, 1, time.Second)
		l.all.Wait()
		for name, want := range map[string]Reason{"all of it": "", "one more": BodyBytes, "three quarters": "", "impressions": BodyBytes,
			"click": BodyBytes, "purchase": "", "too much": BodyBytes} {
			if l.ended[name] != want {
				t.Errorf("%s: %q, want %q", name, l.ended[name], want)
			}
		}
		if s := l.turns.State(); s != (State{}) {
			t.Errorf("%+v is left", s)
		}
	})
}

// Many that come and give up at random: never more work than may, and nothing is left in the end.
func TestNothingIsLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const most = 4
		turns := New(Config{MaxInFlight: most, MaxWaiting: 6, MaxBytes: 1000, Patience: 3 * time.Millisecond})
		random := rand.New(rand.NewPCG(1, 2))
		var working, worked, refused atomic.Int64
		var all sync.WaitGroup
		for range 20_000 {
			class, bytes, work := Class(random.IntN(classes)), random.IntN(400), time.Duration(random.IntN(2000))*time.Microsecond
			time.Sleep(time.Duration(random.IntN(300)) * time.Microsecond)
			all.Go(func() {
				turn, _, ok := turns.Enter(t.Context(), bytes, func() Class { return class })
				if !ok {
					refused.Add(1)
					return
				}
				if n := working.Add(1); n > most {
					t.Errorf("%d work", n)
				}
				time.Sleep(work)
				working.Add(-1)
				worked.Add(1)
				turns.Leave(turn)
			})
		}
		all.Wait()
		if s := turns.State(); s != (State{}) {
			t.Errorf("%+v is left", s)
		}
		if worked.Load() < 1000 || refused.Load() < 1000 {
			t.Errorf("%d worked, %d were refused: that tries nothing", worked.Load(), refused.Load())
		}
	})
}

func TestClassOfBatch(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]Class{
		`{"signals":[{"type":"impression"},{"type":"impression"}]}`:         Impressions,
		`{"signals":[{"type":"impression"},{"type":"click"}]}`:              Ordinary,
		`{"signals":[{"type":"dismiss"}]}`:                                  Ordinary,
		`{"signals":[{"type":"impression"},{"type" : "purchase"}]}`:         Sales,
		`{"signals":[{"type":"add_to_cart"},{"type":"click"}]}`:             Sales,
		`{"signals":[{"type":"remove_from_cart"}]}`:                         Sales,
		`{"signals":[{"type":"update_quantity"}]}`:                          Sales,
		"{\"signals\":[{\"type\"\n:\t\"purchase\"":                          Sales,
		`{"signals":[{"type":"impression","client":{"page_url":"/purchase"`: Impressions,
		`{"signals":[]}`: Ordinary,
		``:               Ordinary,
	} {
		if got := ClassOfBatch([]byte(body)); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
}

func BenchmarkClassOfBatch(b *testing.B) {
	body := []byte(`{"signals":[` + strings.Repeat(`{"signal_id":"sig_0123456789abcdef0123456789abcdef","type":"impression","occurred_at":"2026-01-02T03:04:05.678Z","decision_id":"dec_0123456789abcdef0123456789abcdef"},`, 10) + `{}]}`)
	for b.Loop() {
		ClassOfBatch(body)
	}
}

func BenchmarkTurns(b *testing.B) {
	turns := New(Config{})
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			turn, _, _ := turns.Enter(context.Background(), 100, nil)
			turns.Leave(turn)
		}
	})
}
