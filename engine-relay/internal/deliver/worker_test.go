package deliver

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"storefront.internal/shared/deliveries"
)

func statuses(s deliveries.Completion) string {
	text := ""
	for i, lane := range s.Lanes {
		if i > 0 {
			text += " "
		}
		text += outcomes(lane)
	}
	return text
}

func outcomes(lane deliveries.LaneCompletion) (text string) {
	for _, o := range lane.Outcomes {
		text += map[deliveries.OutcomeStatus]string{deliveries.Delivered: "d", deliveries.DeadLettered: "x",
			deliveries.Failed: "f"}[o.Status]
		if o.Unconfirmed {
			text += "?"
		}
		if o.Isolate {
			text += "!"
		}
	}
	return text
}

func TestBisect(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &fakeStore{leases: []*deliveries.Lease{lease("abXdeXg")}}
		engine := &script{}
		engine.replies = append(engine.replies, func(ctx context.Context, bodies [][]byte) Reply {
			for _, b := range bodies {
				if string(b) == "X" {
					return says(422)(ctx, bodies)
				}
			}
			return takes(ctx, bodies)
		})
		play(t, store, engine, time.Second)
		if len(store.completed) != 1 || statuses(store.completed[0]) != "ddxddxd" {
			t.Fatalf("completed %+v", store.completed)
		}
		order := ""
		for _, o := range store.completed[0].Lanes[0].Outcomes {
			order += string(rune('0' + o.Seq))
			if o.Status == deliveries.DeadLettered && o.Reason != "http_422" {
				t.Errorf("reason %q", o.Reason)
			}
		}
		if order != "1234567" {
			t.Errorf("split out of order: %s", order)
		}
	})
}

func TestMixedResults(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &fakeStore{leases: []*deliveries.Lease{lease("abcd")}}
		engine := &script{
			replies: []func(context.Context, [][]byte) Reply{func(context.Context, [][]byte) Reply {
				return Reply{
					Transmission: Answered,
					Status:       200,
					Results: []Result{
						{Status: Created},
						{Status: Rejected, Reason: "odd"},
						{},
						{Status: Exists},
					},
				}
			}},
		}
		play(t, store, engine, time.Second)
		if got := statuses(store.completed[0]); got != "dxf?d" {
			t.Errorf("statuses %s", got)
		}
		if r := store.completed[0].Lanes[0].Outcomes[1].Reason; r != "rejected: odd" {
			t.Errorf("reason %q", r)
		}
	})
}

// TestUnauthorized: after a 401 no delivery loses an attempt, and no request follows.
func TestUnauthorized(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &fakeStore{leases: []*deliveries.Lease{lease("ab"), lease("cd")}}
		engine := &script{replies: []func(context.Context, [][]byte) Reply{says(401)}}
		play(t, store, engine, time.Hour)
		if len(engine.sent) != 1 || len(store.completed) != 1 || statuses(store.completed[0]) != "" ||
			!slices.Equal(store.calls, []string{"block"}) {
			t.Errorf("sent %v, completed %v, calls %v", engine.sent, store.completed, store.calls)
		}
	})
}

func TestProbeOfACredential(t *testing.T) {
	t.Parallel()
	f := func(reply func(context.Context, [][]byte) Reply, want string) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			l := lease("a")
			l.Probe = true
			store := &fakeStore{leases: []*deliveries.Lease{l}}
			play(t, store, &script{replies: []func(context.Context, [][]byte) Reply{reply}}, time.Second)
			if !slices.Equal(store.calls, []string{want}) {
				t.Errorf("calls %v, want %s", store.calls, want)
			}
		})
	}
	f(takes, "unblock")
	f(says(401), "refuse the probe")
	f(says(404), "unblock")
	f(says(503), "reprobe")
	f(notSent, "reprobe")
}

// TestProbeIsNotLost: a late 401 to an older request keeps other leases from being sent, but not the probe; a
// probe that was not sent may go again at once.
func TestProbeIsNotLost(t *testing.T) {
	t.Parallel()
	f := func(probe, late, stopped bool, sent int, calls ...string) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			store, engine := &fakeStore{}, &script{replies: []func(context.Context, [][]byte) Reply{takes}}
			w := New(Config{Store: store, Engine: engine, RelayID: "r"})
			l := lease("a")
			l.Probe = probe
			s := newSession(w, []*deliveries.Lease{l}, time.Now().Add(w.cfg.Lease), w.refusals.Load())
			if late {
				w.refusals.Add(1)
			}
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			if stopped {
				cancel()
			}
			s.run(ctx)
			if len(engine.sent) != sent || !slices.Equal(store.calls, calls) {
				t.Errorf("sent %v, calls %v; want %d, %v", engine.sent, store.calls, sent, calls)
			}
		})
	}
	f(false, false, false, 1)
	f(false, true, false, 0)
	f(true, false, false, 1, "unblock")
	f(true, true, false, 1, "unblock")
	f(true, false, true, 0, "reprobe")
	f(false, false, true, 0)
}

// TestSecondFailureIsolates: the second failure that a delivery may have caused moves it to the retry lane; a
// failure of the engine does not.
func TestSecondFailureIsolates(t *testing.T) {
	t.Parallel()
	f := func(reply func(context.Context, [][]byte) Reply, attempts int, want string) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			l := lease("ab")
			for i := range l.Entries {
				l.Entries[i].Attempts = attempts
			}
			store := &fakeStore{leases: []*deliveries.Lease{l}}
			play(t, store, &script{replies: []func(context.Context, [][]byte) Reply{reply}}, time.Second)
			if got := statuses(store.completed[0]); got != want {
				t.Errorf("after %d: %s, want %s", attempts, got, want)
			}
			if waits := store.completed[0].Lanes[0].Delay > 0; waits != (want == "ff" || want == "f?f?") {
				t.Errorf("the lane waits %v", store.completed[0].Lanes[0].Delay)
			}
		})
	}
	unanswered := func(context.Context, [][]byte) Reply { return Reply{} }
	f(says(500), 0, "ff")
	f(says(500), 1, "f!f!")
	f(unanswered, 0, "f?f?")
	f(unanswered, 1, "f?!f?!")
	for _, n := range []int{301, 403, 404, 405, 429} {
		f(says(n), 5, "ff")
	}
	f(notSent, 5, "ff")
}

// TestIsolatedEntriesGoOneByOne: each entry of a retry lane has its own request; after the first failure the
// others return unchanged.
func TestIsolatedEntriesGoOneByOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := lease("abcd")
		l.Isolated = true
		store := &fakeStore{leases: []*deliveries.Lease{l}}
		engine := &script{
			replies: []func(context.Context, [][]byte) Reply{takes, says(400), says(500), takes},
		}
		play(t, store, engine, time.Second)
		if !slices.Equal(engine.sent, []string{"a", "b", "c"}) || statuses(store.completed[0]) != "dxf!" {
			t.Errorf("sent %v, completed %s", engine.sent, statuses(store.completed[0]))
		}
	})
}

// TestOutage: a failing engine gets three batches, then one delivery at a time, at growing intervals; then
// everything.
func TestOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &fakeStore{}
		for range 40 {
			store.leases = append(store.leases, lease("ab"))
		}
		engine := &script{}
		for range 20 {
			engine.replies = append(engine.replies, notSent)
		}
		engine.replies = append(engine.replies, takes)
		play(t, store, engine, 10*time.Minute)
		if want := []int{200, 200, 200, 1, 1, 1}; !slices.Equal(store.limits[:6], want) {
			t.Errorf("limits %v", store.limits)
		}
		for i := 8; i < 20; i++ {
			if gap := engine.at[i].Sub(engine.at[i-1]); gap < 7*time.Second || gap > 16*time.Second {
				t.Errorf("%v before probe %d", gap, i)
			}
		}
		if len(store.leases) != 0 || len(engine.sent) != 40 {
			t.Errorf("%d leases left, %d sent", len(store.leases), len(engine.sent))
		}
	})
}

func TestRetryAfterHoldsTheEngine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &fakeStore{leases: []*deliveries.Lease{lease("a"), lease("b")}}
		engine := &script{replies: []func(context.Context, [][]byte) Reply{
			func(context.Context, [][]byte) Reply {
				return Reply{Transmission: Answered, Status: 429, RetryAfter: time.Minute}
			}, takes,
		}}
		play(t, store, engine, 2*time.Minute)
		if len(engine.at) != 2 || engine.at[1].Sub(engine.at[0]) < time.Minute {
			t.Errorf("sent at %v", engine.at)
		}
		if store.completed[0].Lanes[0].Delay != time.Minute {
			t.Errorf("the lane waits %v", store.completed[0].Lanes[0].Delay)
		}
	})
}

// TestStop: a request under way gets the grace period and is then unconfirmed, and its lane is released.
func TestStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &fakeStore{leases: []*deliveries.Lease{lease("ab")}}
		engine := &script{
			replies: []func(context.Context, [][]byte) Reply{func(ctx context.Context, _ [][]byte) Reply {
				<-ctx.Done()
				return Reply{Err: ctx.Err()}
			}},
		}
		began := time.Now()
		play(t, store, engine, time.Second)
		if took := time.Since(began); took != 6*time.Second {
			t.Errorf("stopped after %v, want the second and the grace of five", took)
		}
		if len(store.completed) != 1 || statuses(store.completed[0]) != "f?f?" {
			t.Errorf("completed %+v", store.completed)
		}
	})
}

func TestCompleteIsRepeated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &fakeStore{
			leases:      []*deliveries.Lease{lease("a")},
			completeErr: []error{errors.New("cut"), nil},
		}
		engine := &script{replies: []func(context.Context, [][]byte) Reply{takes}}
		play(t, store, engine, time.Minute)
		if len(engine.sent) != 1 || len(store.completed) != 1 {
			t.Errorf("sent %v, completed %d times", engine.sent, len(store.completed))
		}
	})
}

func TestDisabled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &fakeStore{leases: []*deliveries.Lease{lease("a")}}
		w := New(Config{Store: store, RelayID: "r"})
		ctx, cancel := context.WithTimeout(context.Background(), 4*time.Second)
		defer cancel()
		_ = w.Run(ctx)
		if len(store.leases) != 1 || len(store.calls) != 2 {
			t.Errorf("leases %d, calls %v", len(store.leases), store.calls)
		}
	})
}

// TestNudge: a nudge folds deltas at once and wakes an idle worker.
func TestNudge(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &fakeStore{}
		engine := &script{replies: []func(context.Context, [][]byte) Reply{takes}}
		w := New(
			Config{
				Store:   store,
				Engine:  engine,
				RelayID: "r",
				Workers: 2,
				Poll:    time.Hour,
				Compact: time.Hour,
			},
		)
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { defer close(done); _ = w.Run(ctx) }()
		synctest.Wait()
		began := time.Now()
		store.mu.Lock()
		store.leases, store.woken = append(store.leases, lease("a")), 1
		store.mu.Unlock()
		w.Nudge()
		w.Nudge()
		synctest.Wait()
		if len(engine.sent) != 1 || !time.Now().Equal(began) {
			t.Errorf("sent %v after %v", engine.sent, time.Since(began))
		}
		cancel()
		<-done
	})
}
