package intake_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"storefront.internal/edge/internal/claims"
	"storefront.internal/edge/internal/claims/claimstest"
	"storefront.internal/edge/internal/intake"
	"storefront.internal/edge/internal/intake/intaketest"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/signal"
	"storefront.internal/shared/stream"
)

// world is one history: processes, clients, and faults that follow from a seed. Time is that of the synctest
// bubble.
//
// Every client, request and process has a random generator of its own, which follows from the seed and its
// name; and every step ends with a random sleep, so that no two goroutines run at the same instant. So a seed
// plays the same history each time, however the scheduler orders goroutines.
type world struct {
	seed    uint64
	faults  atomic.Bool // crashes, stalls, unknown and failed hand-offs
	flaky   bool        // Redis fails calls, before or after their effect
	redis   *claimstest.FakeRedis
	log     *intaketest.Log
	checker *intaketest.Checker
	edges   []*intake.Service

	mu    sync.Mutex
	calls map[string][]Call // by signal id
}

// source is the random generator of one client, request or process.
type source struct {
	w   *world
	mu  sync.Mutex
	rng *rand.Rand
}

// source returns the generator of that name.
func (w *world) source(name string) *source {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return &source{w: w, rng: rand.New(rand.NewPCG(w.seed, h.Sum64()))}
}

func (s *source) float() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rng.Float64()
}

func (s *source) uint64() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rng.Uint64()
}

// sometimes is true with probability p, while there are faults.
func (s *source) sometimes(p float64) bool { return s.w.faults.Load() && s.float() < p }

// crash is the panic of a process that dies in the middle of a request.
type crash struct{}

// sourceKey is the context key of a request's source. A request that has one may die.
type sourceKey struct{}

// before delays every single command of Redis a little, so that commands may come in any order. Sometimes it
// stalls for longer than claims.TakeoverAfter, dies, or fails.
func (w *world) before(background *source) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		s, mortal := ctx.Value(sourceKey{}).(*source)
		if !mortal {
			s = background
		}
		time.Sleep(time.Duration(s.float() * float64(time.Millisecond)))
		if mortal {
			if s.sometimes(0.02) {
				time.Sleep(15 * time.Second)
			}
			if s.sometimes(0.01) {
				panic(crash{})
			}
		}
		if w.flaky && s.sometimes(0.02) {
			return intaketest.ErrFault
		}
		return nil
	}
}

// produce is Kafka with its three outcomes; a record of unknown outcome is stored at once, later, or never.
func (w *world) produce(ctx context.Context, store func()) (stream.Outcome, error) {
	s := ctx.Value(sourceKey{}).(*source)
	_ = w.before(nil)(ctx)
	switch {
	case s.sometimes(0.1):
		return stream.Refused, intaketest.ErrFault
	case s.sometimes(0.05):
		return stream.Unknown, intaketest.ErrFault
	case s.sometimes(0.05):
		store()
		return stream.Unknown, intaketest.ErrFault
	case s.sometimes(0.05):
		time.AfterFunc(time.Duration(s.float()*float64(20*time.Second)), store)
		return stream.Unknown, intaketest.ErrFault
	}
	if store(); s.sometimes(0.05) {
		time.Sleep(15 * time.Second) // stalled after the acknowledgement
	}
	return stream.Acknowledged, nil
}

// send sends one request. It reports whether the client got a 202.
func (w *world) send(s *source, edge *intake.Service, ids []string) (answered bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, died := r.(crash); !died {
				panic(r)
			}
		}
	}()
	began := time.Now()
	answers := map[string]Answer{}
	defer func() { w.addCall(ids, began, answers) }()
	ctx := context.WithValue(context.Background(), sourceKey{}, s)
	results, err := edge.Record(ctx, intaketest.Request(time.Now(), ids...), nil)
	if err != nil {
		if f := fault.From(err); f.Code != fault.SignalsUnavailable || f.RetryAfter < time.Second {
			w.checker.Fail("unexpected %v", err)
		}
		return false
	}
	if s.sometimes(0.4) {
		return false // the answer did not reach the client
	}
	w.checker.Answer(results)
	for _, r := range results {
		answers[r.SignalID] = map[signal.Status]Answer{
			signal.Accepted: answeredAccepted, signal.Duplicate: answeredDuplicate}[r.Status]
	}
	return true
}

// addCall adds what a client learned of each of its signals.
func (w *world) addCall(ids []string, began time.Time, answers map[string]Answer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range ids {
		w.calls[id] = append(w.calls[id], Call{Begin: began, End: time.Now(), Answer: answers[id]})
	}
}

// checkOrder checks each signal's history as a whole.
func (w *world) checkOrder() {
	for _, id := range slices.Sorted(maps.Keys(w.calls)) {
		calls := w.calls[id]
		if !linearizable(calls, w.flaky) {
			w.checker.Fail("%s: no order of these calls explains the answers: %+v", id, calls)
		}
	}
}

// client sends one batch up to six times.
func (w *world) client(n int, all []string) {
	rng := w.source(fmt.Sprintf("client %d", n)).rng
	time.Sleep(time.Duration(rng.Int64N(int64(time.Millisecond)))) // no two clients run at the same instant
	ids := make([]string, 0, len(all))
	for _, i := range rng.Perm(len(all))[:1+rng.IntN(len(all))] {
		ids = append(ids, all[i])
	}
	for request := range 1 + rng.IntN(6) {
		edge := w.edges[rng.IntN(len(w.edges))]
		if w.send(w.source(fmt.Sprintf("client %d request %d", n, request)), edge, ids) &&
			rng.Float64() < 0.6 {
			return
		}
		time.Sleep(time.Duration(rng.Int64N(int64(4 * time.Second))))
	}
}

// heal ends the faults and resends every id until it is answered, which has to come within 30 s.
func (w *world) heal(all []string) {
	w.faults.Store(false)
	for _, id := range all {
		began := time.Now()
		for !w.send(w.source("heal "+id), w.edges[0], []string{id}) {
			if time.Since(began) > 30*time.Second {
				w.checker.Fail("the resend of %s does not end", id)
				return
			}
		}
		if w.log.Count(ident.SignalID(id)) == 0 {
			w.checker.Fail("%s was answered and is not in the log", id)
		}
	}
}

// history plays one seed; plant may put a bug between the processes and Redis.
func history(t *testing.T, seed uint64, flaky bool, plant func(claims.Store) claims.Store) error {
	_, err := play(t, seed, flaky, plant)
	return err
}

// play is history with the calls that the clients made.
func play(t *testing.T, seed uint64, flaky bool, plant func(claims.Store) claims.Store) (
	calls map[string][]Call, err error) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{seed: seed, flaky: flaky, redis: claimstest.NewFakeRedis(), log: &intaketest.Log{},
			calls: map[string][]Call{}}
		w.faults.Store(true)
		w.log.Fault = w.produce
		w.checker = &intaketest.Checker{Log: w.log, Forgetful: flaky}
		for i := range 2 {
			s := w.source(fmt.Sprintf("process %d", i))
			store := plant(w.redis.Connect(w.before(s)))
			w.edges = append(w.edges, intaketest.Service(store, w.log, &intaketest.Ledger{Log: w.log},
				s.uint64))
		}
		rng := w.source("history").rng
		var all []string
		for i := range 1 + rng.IntN(5) {
			all = append(all, fmt.Sprintf("sig_%d", i))
		}
		var clients sync.WaitGroup
		for n := range 2 + rng.IntN(6) {
			clients.Go(func() { w.client(n, all) })
		}
		clients.Wait()
		synctest.Wait()
		w.heal(all)
		for _, edge := range w.edges {
			edge.Close(context.Background())
		}
		time.Sleep(time.Minute) // until records of unknown outcome are stored
		w.checkOrder()
		calls, err = w.calls, w.checker.Err()
	})
	return calls, err
}

// runs returns how many histories are played; CLAIM_RUNS asks for more.
func runs(t *testing.T, usual int) int {
	if n, err := strconv.Atoi(os.Getenv("CLAIM_RUNS")); err == nil {
		return n
	}
	if testing.Short() {
		return usual / 5
	}
	return usual
}

func noBug(s claims.Store) claims.Store { return s }

// TestInterleavings plays random interleavings of single commands with crashes, stalls, lost answers and
// unknown outcomes: no false duplicate, never two accepted, every resend ends.
func TestInterleavings(t *testing.T) {
	t.Parallel()
	for seed := range uint64(runs(t, 500)) {
		if err := history(t, seed, false, noBug); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// TestInterleavingsFlakyRedis lets Redis fail as well: accepted may come twice then, a false duplicate never.
func TestInterleavingsFlakyRedis(t *testing.T) {
	t.Parallel()
	for seed := range uint64(runs(t, 250)) {
		if err := history(t, seed, true, noBug); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// TestSeedsReproduce checks that a seed plays the same history again, to the nanosecond and the answer.
func TestSeedsReproduce(t *testing.T) {
	t.Parallel()
	for seed := range uint64(runs(t, 50)) {
		for _, flaky := range []bool{false, true} {
			first, _ := play(t, seed, flaky, noBug)
			again, _ := play(t, seed, flaky, noBug)
			if !reflect.DeepEqual(first, again) {
				t.Fatalf("seed %d, flaky %v: the second time is another history:\n%+v\n%+v", seed, flaky,
					first, again)
			}
		}
	}
}

// planted is a store with a bug: each function changes the results of one call.
type planted struct {
	claims.Store
	inspect func(statuses []claims.Status)
	resolve func(status claims.Status, previous []claims.Status)
	swap    func(swapped []bool)
	claim   func(previous []string)
}

func (p planted) Inspect(ctx context.Context, attempts []string, statuses []claims.Status, keys []claims.Key,
	ages []time.Duration) error {
	err := p.Store.Inspect(ctx, attempts, statuses, keys, ages)
	if p.inspect != nil {
		p.inspect(statuses)
	}
	return err
}

func (p planted) Resolve(ctx context.Context, attempts []string, status claims.Status,
	previous []claims.Status) error {
	err := p.Store.Resolve(ctx, attempts, status, previous)
	if p.resolve != nil {
		p.resolve(status, previous)
	}
	return err
}

func (p planted) CompareAndSwap(ctx context.Context, keys []claims.Key, from []string, holder string,
	swapped []bool) error {
	err := p.Store.CompareAndSwap(ctx, keys, from, holder, swapped)
	if p.swap != nil {
		p.swap(swapped)
	}
	return err
}

func (p planted) Claim(ctx context.Context, keys []claims.Key, holder string,
	previous []string) (claims.Memory, error) {
	memory, err := p.Store.Claim(ctx, keys, holder, previous)
	if p.claim != nil {
		p.claim(previous)
	}
	return memory, err
}

// TestPlantedBugs: the checker finds the bugs that it is there for.
func TestPlantedBugs(t *testing.T) {
	bugs := map[string]planted{
		"open is a duplicate": {
			inspect: func(s []claims.Status) { replace(s, claims.Open, claims.Done) },
		},
		"released is a duplicate": {
			inspect: func(s []claims.Status) { replace(s, claims.Released, claims.Done) },
		},
		"lost is ignored": {resolve: func(status claims.Status, previous []claims.Status) {
			if status == claims.Done {
				replace(previous, claims.Lost, claims.Open)
			}
		}},
		"takeover without compare": {swap: func(swapped []bool) {
			for i := range swapped {
				swapped[i] = true
			}
		}},
		"claims of others are ignored": {claim: func(previous []string) { clear(previous) }},
		"takeover ignores done": {
			inspect: func(s []claims.Status) { replace(s, claims.Done, claims.Released) },
		},
	}
	for name, bug := range bugs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(2000) {
				plant := func(s claims.Store) claims.Store { bug.Store = s; return bug }
				if err := history(t, seed, false, plant); err != nil {
					return
				}
			}
			t.Error("2000 histories did not find the bug")
		})
	}
}

// TestSeedIsReplayed: a seed plays the same history each time.
func TestSeedIsReplayed(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		var first string
		for range 3 {
			var mu sync.Mutex
			var commands strings.Builder
			add := func(what any) {
				mu.Lock()
				defer mu.Unlock()
				fmt.Fprintln(&commands, time.Now().UnixNano(), what)
			}
			record := func(s claims.Store) claims.Store {
				return planted{Store: s, claim: func(previous []string) { add(len(previous)) },
					inspect: func(s []claims.Status) { add(s) }}
			}
			if err := history(t, seed, true, record); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if first == "" {
				first = commands.String()
			}
			if got := commands.String(); got != first {
				t.Fatalf("seed %d played\n%s\nand before\n%s", seed, got, first)
			}
		}
	}
}

func replace(statuses []claims.Status, old, with claims.Status) {
	for i := range statuses {
		if statuses[i] == old {
			statuses[i] = with
		}
	}
}
