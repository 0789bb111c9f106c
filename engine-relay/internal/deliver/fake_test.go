package deliver

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"storefront.internal/shared/deliveries"
)

// fakeStore hands out the leases that it was given, one at a time or all at once, and keeps what came of
// them.
type fakeStore struct {
	mu          sync.Mutex
	leases      []*deliveries.Lease
	together    bool
	looks       int
	limits      []int
	completed   []deliveries.Completion
	completeErr []error // of the next settlements
	calls       []string
	blocked     bool
	woken       int
	stopped     bool
}

func (f *fakeStore) lock() func() { f.mu.Lock(); return f.mu.Unlock }

func (f *fakeStore) Lease(_ context.Context, q deliveries.LeaseQuery) ([]*deliveries.Lease, error) {
	defer f.lock()()
	f.looks++
	if f.blocked {
		return nil, deliveries.ErrBlocked
	}
	for i, l := range f.leases {
		if !slices.Contains(q.Kinds, l.Kind) || l.Isolated && q.SkipRetryLanes {
			continue
		}
		f.limits = append(f.limits, q.Limit)
		if f.together {
			all := f.leases
			f.leases = nil
			return all, nil
		}
		f.leases = slices.Delete(f.leases, i, i+1)
		return []*deliveries.Lease{l}, nil
	}
	return nil, nil
}

func (f *fakeStore) Complete(
	_ context.Context,
	s deliveries.Completion,
) (deliveries.Completed, error) {
	defer f.lock()()
	if len(f.completeErr) > 0 {
		err := f.completeErr[0]
		f.completeErr = f.completeErr[1:]
		if err != nil {
			return deliveries.Completed{}, err
		}
	}
	f.completed = append(f.completed, s)
	n := 0
	for _, lane := range s.Lanes {
		n += len(lane.Outcomes)
	}
	return deliveries.Completed{Delivered: n}, nil
}

func (f *fakeStore) note(what string) error {
	defer f.lock()()
	f.calls = append(f.calls, what)
	return nil
}

func (f *fakeStore) Block(_ context.Context, r deliveries.Refusal) error {
	_ = f.note(map[bool]string{false: "block", true: "refuse the probe"}[r.Probe])
	defer f.lock()()
	f.blocked = true
	return nil
}
func (f *fakeStore) Unblock(context.Context, deliveries.Credential) error { return f.note("unblock") }
func (f *fakeStore) AllowProbeAfter(context.Context, deliveries.Credential, time.Duration) error {
	return f.note("reprobe")
}
func (f *fakeStore) Heartbeat(_ context.Context, r deliveries.Relay) error {
	if !r.Configured {
		return f.note("beat disabled")
	}
	return nil
}
func (f *fakeStore) MarkStopped(context.Context, string) error {
	defer f.lock()()
	f.stopped = true
	return nil
}

// RefreshLaneHeads implements Store.
func (f *fakeStore) RefreshLaneHeads(context.Context, time.Duration) (bool, error) { return false, nil }

func (f *fakeStore) Compact(context.Context) (deliveries.Compacted, error) {
	defer f.lock()()
	n := f.woken
	f.woken = 0
	return deliveries.Compacted{Woken: n}, nil
}
func (f *fakeStore) CountLanes(context.Context, deliveries.Kind) (map[string]int64, error) {
	return map[string]int64{}, nil
}

func (f *fakeStore) ViewOf(context.Context, deliveries.Kind) (deliveries.View, error) {
	return deliveries.View{}, nil
}

// script answers requests in turn; the last answer goes on.
type script struct {
	mu      sync.Mutex
	replies []func(ctx context.Context, bodies [][]byte) Reply
	sent    []string
	at      []time.Time
}

func (s *script) Credential() deliveries.Credential { return deliveries.Credential{1} }

func (s *script) Send(ctx context.Context, _ deliveries.Kind, bodies [][]byte) Reply {
	s.mu.Lock()
	answer := s.replies[0]
	if len(s.replies) > 1 {
		s.replies = s.replies[1:]
	}
	whole := ""
	for _, b := range bodies {
		whole += string(b)
	}
	s.sent, s.at = append(s.sent, whole), append(s.at, time.Now())
	s.mu.Unlock()
	return answer(ctx, bodies)
}

func says(status int) func(context.Context, [][]byte) Reply {
	return func(context.Context, [][]byte) Reply { return Reply{Transmission: Answered, Status: status} }
}

func takes(_ context.Context, bodies [][]byte) Reply {
	r := Reply{Transmission: Answered, Status: 200}
	for range bodies {
		r.Results = append(r.Results, Result{Status: Created})
	}
	return r
}

func notSent(context.Context, [][]byte) Reply {
	return Reply{Transmission: NotSent, Err: errors.New("refused")}
}

// lease holds one delivery per letter.
func lease(letters string) *deliveries.Lease {
	l := &deliveries.Lease{Kind: deliveries.Interaction, ConnectionID: "con_1"}
	for i, c := range letters {
		l.Entries = append(
			l.Entries,
			deliveries.LeasedEntry{Seq: int64(i + 1), ID: string(c), Body: []byte(string(c))},
		)
	}
	return l
}

// play runs a worker over the leases until nothing moves any more, for the time given.
func play(t *testing.T, store *fakeStore, engine *script, d time.Duration) {
	t.Helper()
	w := New(Config{Store: store, Engine: engine, RelayID: "r", Workers: 1})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = w.Run(ctx) }()
	time.Sleep(d)
	cancel()
	<-done
	if !store.stopped {
		t.Error("did not sign off")
	}
}
