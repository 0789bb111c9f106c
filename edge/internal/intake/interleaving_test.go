package intake_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"storefront.internal/edge/internal/intake"
	"storefront.internal/edge/internal/intake/claimstest"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/signal"
	"storefront.internal/shared/stream"
)

// world is one history: processes, clients, and faults drawn from a seed. Time is the bubble's.
type world struct {
	t       *testing.T
	mu      sync.Mutex
	rng     *rand.Rand
	faults  bool // crashes, stalls, unknown and refused hand-offs
	flaky   bool // Redis fails calls, before or after their effect
	memory  *claimstest.Memory
	log     *claimstest.Log
	checker *claimstest.Checker
	edges   []*intake.Service
	calls   map[string][]claimstest.Call // by signal id
}

// crash is what a process that dies in the middle of a request panics with.
type crash struct{}

// mortal marks the context of a request that may die.
type mortal struct{}

func (w *world) draw() float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rng.Float64()
}

func (w *world) sometimes(p float64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.faults && w.rng.Float64() < p
}

// turn delays every single command a little, so that any order of commands may come; now and then it stalls beyond
// the lease, dies, or fails.
func (w *world) turn(ctx context.Context) error {
	time.Sleep(time.Duration(w.draw() * float64(time.Millisecond)))
	if ctx.Value(mortal{}) != nil {
		if w.sometimes(0.02) {
			time.Sleep(15 * time.Second)
		}
		if w.sometimes(0.01) {
			panic(crash{})
		}
	}
	if w.flaky && w.sometimes(0.02) {
		return claimstest.ErrFault
	}
	return nil
}

// produce is Kafka with its three outcomes; an unknown one may land at once, later, or never.
func (w *world) produce(ctx context.Context, land func()) (stream.Outcome, error) {
	_ = w.turn(ctx)
	switch {
	case w.sometimes(0.1):
		return stream.Refused, claimstest.ErrFault
	case w.sometimes(0.05):
		return stream.Unknown, claimstest.ErrFault
	case w.sometimes(0.05):
		land()
		return stream.Unknown, claimstest.ErrFault
	case w.sometimes(0.05):
		time.AfterFunc(time.Duration(w.draw()*float64(20*time.Second)), land)
		return stream.Unknown, claimstest.ErrFault
	}
	if land(); w.sometimes(0.05) {
		time.Sleep(15 * time.Second) // stalled with the acknowledgement in hand
	}
	return stream.Acknowledged, nil
}

// send is one request of a client: true when it was answered with 202.
func (w *world) send(edge *intake.Service, ids []string) (answered bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, died := r.(crash); !died {
				panic(r)
			}
		}
	}()
	began := time.Now()
	seen := map[string]claimstest.Word{}
	defer func() { w.note(ids, began, seen) }()
	ctx := context.WithValue(context.Background(), mortal{}, true)
	results, err := edge.Record(ctx, claimstest.Request(time.Now(), ids...), nil)
	if err != nil {
		if f := fault.From(err); f.Code != fault.SignalsUnavailable || f.RetryAfter < time.Second {
			w.checker.Fail("unexpected %v", err)
		}
		return false
	}
	if w.sometimes(0.4) {
		return false // the answer never reached the client
	}
	w.checker.Answer(results)
	for _, r := range results {
		seen[r.SignalID] = map[signal.Status]claimstest.Word{signal.Accepted: claimstest.Accepted, signal.Duplicate: claimstest.Duplicate}[r.Status]
	}
	return true
}

// note keeps what a client saw of each of its signals.
func (w *world) note(ids []string, began time.Time, seen map[string]claimstest.Word) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range ids {
		w.calls[id] = append(w.calls[id], claimstest.Call{Begin: began, End: time.Now(), Word: seen[id]})
	}
}

// inOrder checks each signal's history as a whole.
func (w *world) inOrder() {
	for id, calls := range w.calls {
		if !claimstest.Linearizable(calls, w.flaky) {
			w.checker.Fail("%s: no order of these calls explains the answers: %+v", id, calls)
		}
	}
}

func (w *world) client(seed uint64, all []string) {
	rng := rand.New(rand.NewPCG(seed, 1))
	ids := make([]string, 0, len(all))
	for _, i := range rng.Perm(len(all))[:1+rng.IntN(len(all))] {
		ids = append(ids, all[i])
	}
	for range 1 + rng.IntN(6) {
		edge := w.edges[rng.IntN(len(w.edges))]
		if w.send(edge, ids) && rng.Float64() < 0.6 {
			return
		}
		time.Sleep(time.Duration(rng.Int64N(int64(4 * time.Second))))
	}
}

// heal ends the faults; every id is resent until it is answered, which has to come within three leases.
func (w *world) heal(all []string) {
	w.mu.Lock()
	w.faults = false
	w.mu.Unlock()
	for _, id := range all {
		began := time.Now()
		for !w.send(w.edges[0], []string{id}) {
			if time.Since(began) > 30*time.Second {
				w.checker.Fail("the resend of %s does not end", id)
				return
			}
		}
		if w.log.Holds(ident.SignalID(id)) == 0 {
			w.checker.Fail("%s was answered and is not in the log", id)
		}
	}
}

// history plays one seed; plant may put a bug between the processes and Redis.
func history(t *testing.T, seed uint64, flaky bool, plant func(intake.Claims) intake.Claims) (err error) {
	synctest.Test(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(seed, 0))
		w := &world{t: t, rng: rng, faults: true, flaky: flaky, memory: claimstest.NewMemory(), log: &claimstest.Log{}, calls: map[string][]claimstest.Call{}}
		w.log.Fault = w.produce
		w.checker = &claimstest.Checker{Log: w.log, Forgetful: flaky}
		for range 2 {
			w.edges = append(w.edges, claimstest.Service(plant(w.memory.Connect(w.turn)), w.log, &claimstest.Ledger{Log: w.log}))
		}
		var all []string
		for i := range 1 + rng.IntN(5) {
			all = append(all, fmt.Sprintf("sig_%d", i))
		}
		seeds := make([]uint64, 2+rng.IntN(6))
		for i := range seeds {
			seeds[i] = rng.Uint64()
		}
		var clients sync.WaitGroup
		for _, s := range seeds {
			clients.Go(func() { w.client(s, all) })
		}
		clients.Wait()
		w.heal(all)
		for _, edge := range w.edges {
			edge.Close(context.Background())
		}
		time.Sleep(time.Minute) // what lands late has landed
		w.inOrder()
		err = w.checker.Err()
	})
	return err
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

func noBug(c intake.Claims) intake.Claims { return c }

// TestInterleavings plays random interleavings of single commands with crashes, stalls beyond the lease, lost answers
// and unknown hand-offs: no false duplicate, never two accepted, every resend ends.
func TestInterleavings(t *testing.T) {
	t.Parallel()
	for seed := range uint64(runs(t, 500)) {
		if err := history(t, seed, false, noBug); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// TestInterleavingsFlakyRedis lets Redis fail as well: a second accepted may come then, a false duplicate never.
func TestInterleavingsFlakyRedis(t *testing.T) {
	t.Parallel()
	for seed := range uint64(runs(t, 250)) {
		if err := history(t, seed, true, noBug); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// planted is a connection with a bug.
type planted struct {
	intake.Claims
	look  func(registers []intake.Register)
	mark  func(state intake.Register, previous []intake.Register)
	seize func(won []bool)
	take  func(previous []string)
}

func (p planted) Look(ctx context.Context, attempts []string, registers []intake.Register, keys []intake.ClaimKey, ages []time.Duration) error {
	err := p.Claims.Look(ctx, attempts, registers, keys, ages)
	if p.look != nil {
		p.look(registers)
	}
	return err
}

func (p planted) Mark(ctx context.Context, attempts []string, state intake.Register, previous []intake.Register) error {
	err := p.Claims.Mark(ctx, attempts, state, previous)
	if p.mark != nil {
		p.mark(state, previous)
	}
	return err
}

func (p planted) Seize(ctx context.Context, keys []intake.ClaimKey, from []string, holder string, won []bool) error {
	err := p.Claims.Seize(ctx, keys, from, holder, won)
	if p.seize != nil {
		p.seize(won)
	}
	return err
}

func (p planted) Take(ctx context.Context, keys []intake.ClaimKey, holder string, previous []string) (intake.Epoch, error) {
	epoch, err := p.Claims.Take(ctx, keys, holder, previous)
	if p.take != nil {
		p.take(previous)
	}
	return epoch, err
}

// TestPlantedBugs: the checker finds what it is there for.
func TestPlantedBugs(t *testing.T) {
	bugs := map[string]planted{
		"pending is a duplicate":  {look: func(r []intake.Register) { replace(r, intake.Open, intake.Done) }},
		"released is a duplicate": {look: func(r []intake.Register) { replace(r, intake.Released, intake.Done) }},
		"lost is ignored": {mark: func(state intake.Register, previous []intake.Register) {
			if state == intake.Done {
				replace(previous, intake.Lost, intake.Open)
			}
		}},
		"takeover without compare": {seize: func(won []bool) {
			for i := range won {
				won[i] = true
			}
		}},
		"claims are not looked at": {take: func(previous []string) { clear(previous) }},
		"takeover ignores done":    {look: func(r []intake.Register) { replace(r, intake.Done, intake.Released) }},
	}
	for name, bug := range bugs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(2000) {
				plant := func(c intake.Claims) intake.Claims { bug.Claims = c; return bug }
				if err := history(t, seed, false, plant); err != nil {
					return
				}
			}
			t.Error("2000 histories, and nobody noticed")
		})
	}
}

func replace(registers []intake.Register, old, with intake.Register) {
	for i := range registers {
		if registers[i] == old {
			registers[i] = with
		}
	}
}
