package nemesis

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"storefront.internal/deploy/faults/history"
	"storefront.internal/deploy/faults/load"
	"storefront.internal/deploy/faults/topology"
	"storefront.internal/deploy/stack"
	"storefront.internal/deploy/stack/client"
)

// fakeTopology has names and links, which is enough to schedule faults.
func fakeTopology(t *testing.T) *topology.Topology {
	t.Helper()
	named := func(name string) *stack.Process { return &stack.Process{Name: name, URL: "http://" + name} }
	x := &topology.Topology{
		Deployment: stack.New(t.Context(), stack.Config{}), Edges: []*stack.Process{named("edge-1"),
			named("edge-2")},
		Relays: []*stack.Process{named("relay-1"),
			named("relay-2")}, Control: named("control"), Engine: named("engine"),
		Provider: named("provider"), PostgresDisk: &topology.Disk{}, KafkaDisk: &topology.Disk{},
	}
	x.Postgres, x.Redis, x.Brokers = named("postgres"), named("redis"), []*stack.Process{named("kafka")}
	t.Cleanup(func() { _ = x.Deployment.Close(0) })
	for _, name := range []string{"clients>edge-1", "clients>edge-2", "clients>control", "edge-1>kafka",
		"edge-2>kafka", "edge-1>redis",
		"edge-2>redis", "relay-1>postgres", "relay-2>postgres", "relay-1>engine", "relay-2>engine",
		"relay-1>kafka", "relay-2>kafka",
		"control>postgres", "control>redis"} {
		from, to, _ := strings.Cut(name, ">")
		if _, err := x.OpenLink(from, to, "127.0.0.1:1"); err != nil {
			t.Fatal(err)
		}
	}
	return x
}

func kindNames() []string {
	var all []string
	for _, k := range Kinds() {
		all = append(all, k.Name)
	}
	return all
}

func target() load.Target {
	return load.Target{Connection: "con_1", Decision: "dec_1", Item: "itm_1",
		Key: client.Key{APIKeyID: "key_1", Secret: "spk_1"}}
}

func scheduled(t *testing.T, seed uint64, redis bool, count int) []Operation {
	t.Helper()
	n := New(Config{Topology: fakeTopology(t), Seed: seed, Kinds: kindNames(), Redis: redis, ChaosBin: "bin",
		Logf:   t.Logf,
		Target: func(*rand.Rand) load.Target { return target() }})
	var all []Operation
	for range count {
		c, ok := n.next(nil)
		if !ok {
			t.Fatal("nothing to draw")
		}
		all = append(all, c)
	}
	return all
}

func names(all []Operation) (out []string) {
	for _, c := range all {
		out = append(out, c.Kind+" "+c.Detail+" "+c.Duration.String())
	}
	return out
}

// TestSeed checks that the seed determines the schedule.
func TestSeed(t *testing.T) {
	t.Parallel()
	one, same, other := names(scheduled(t, 7, true, 300)), names(scheduled(t, 7, true,
		300)), names(scheduled(t, 8, true, 300))
	if !slices.Equal(one, same) {
		t.Error("the same seed gives different schedules")
	}
	if slices.Equal(one, other) {
		t.Error("different seeds give the same schedule")
	}
}

// TestEveryKind checks that all possible kinds are equally frequent.
func TestEveryKind(t *testing.T) {
	t.Parallel()
	counts := map[string]int{}
	for _, c := range scheduled(t, 3, true, 14*20) {
		counts[c.Kind]++
	}
	for _, kind := range kindNames() {
		want := 20
		if kind == "N7" || kind == SingleKind { // the disks cannot be filled; Single is another schedule
			want = 0
		}
		if counts[kind] != want {
			t.Errorf("%s was scheduled %d times, want %d", kind, counts[kind], want)
		}
	}
}

// TestWithoutRedis checks that no fault has Redis or a link to it as target.
func TestWithoutRedis(t *testing.T) {
	t.Parallel()
	for _, c := range scheduled(t, 5, false, 1000) {
		for _, touched := range c.Targets {
			if touched == "redis" || len(touched) > 6 && touched[len(touched)-6:] == ">redis" {
				t.Fatalf("%s %s", c.Kind, c.Detail)
			}
		}
	}
}

type countingFault struct {
	injected, healed *atomic.Int64
	err              error
}

func (f countingFault) Inject(context.Context) error { f.injected.Add(1); return f.err }
func (f countingFault) Heal(ctx context.Context) error {
	f.healed.Add(1)
	return ctx.Err()
}

// TestHealsAlways checks that faults are healed and recorded, also after a failed injection and at the end of
// the run.
func TestHealsAlways(t *testing.T) {
	t.Parallel()
	var file bytes.Buffer
	recorder := history.NewRecorder(&file)
	n := New(Config{Recorder: recorder, Logf: t.Logf})
	var injected, healed atomic.Int64
	over, cancel := context.WithCancel(t.Context())
	cancel()
	n.run(over, Operation{Fault: countingFault{&injected, &healed, errors.New("no")}, Kind: "N1",
		Detail: "one", Duration: time.Hour})
	n.run(t.Context(), Operation{Fault: countingFault{&injected, &healed, nil}, Kind: "N2", Detail: "two",
		Duration: time.Millisecond})
	if injected.Load() != 2 || healed.Load() != 2 || len(n.Failed()) != 1 || n.Counts()["N1"] != 1 {
		t.Errorf("injected %d, healed %d, failed %v, counts %v", injected.Load(), healed.Load(), n.Failed(),
			n.Counts())
	}
	if err := recorder.Flush(); err != nil {
		t.Fatal(err)
	}
	h, err := history.Read(&file)
	faults := h.Faults
	if err != nil || len(faults) != 2 || faults[0].Kind != "N1" || faults[0].Until < faults[0].At {
		t.Errorf("%+v %v", faults, err)
	}
}

func TestConflicts(t *testing.T) {
	t.Parallel()
	n := New(Config{})
	playing := []Operation{{Targets: []string{"kafka"}}}
	if !n.conflicts(Operation{Targets: []string{"relay-1", "kafka"}}, playing) ||
		n.conflicts(Operation{Targets: []string{"relay-1"}}, playing) {
		t.Error("wrong conflicts")
	}
}

// TestAttacks checks that the attacks differ and carry their signal ids.
func TestAttacks(t *testing.T) {
	t.Parallel()
	f := &abusiveClients{target: target()}
	seen := map[string]bool{}
	random := rand.New(rand.NewPCG(1, 1))
	for i, attack := range f.attacks(random) {
		a := attack(randomID(random))
		if seen[a.text] {
			t.Errorf("attack %d is a duplicate", i)
		}
		seen[a.text] = true
		if !bytes.Contains([]byte(a.text), []byte(a.id)) {
			t.Errorf("attack %d does not carry its id", i)
		}
	}
}
