package nemesis

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"storefront.internal/deploy/faults/history"
	"storefront.internal/deploy/faults/link"
	"storefront.internal/deploy/faults/topology"
)

// paper is a topology of names: enough to draw faults from.
func paper() *topology.Topology {
	service := func(name string) *topology.Service {
		return &topology.Service{Unit: &topology.Unit{Name: name}, URL: "http://" + name}
	}
	unit := func(name string) *topology.Unit { return &topology.Unit{Name: name} }
	x := &topology.Topology{
		Postgres: unit("postgres"), Redis: unit("redis"), Kafka: unit("kafka"), Edges: []*topology.Service{service("edge-1"), service("edge-2")},
		Relays: []*topology.Service{service("relay-1"), service("relay-2")}, Control: service("control"), Engine: service("engine"), Provider: service("provider"),
		PostgresDisk: &topology.Disk{}, KafkaDisk: &topology.Disk{}, Links: map[string]*link.Link{},
	}
	for _, name := range []string{"clients>edge-1", "clients>edge-2", "clients>control", "clients>relay-1", "edge-1>kafka", "edge-2>kafka", "edge-1>redis",
		"edge-2>redis", "relay-1>postgres", "relay-2>postgres", "relay-1>engine", "relay-2>engine", "relay-1>kafka", "relay-2>kafka",
		"control>postgres", "control>redis"} {
		x.Links[name] = &link.Link{Name: name}
	}
	return x
}

func drawn(t *testing.T, seed uint64, redis bool, count int) []Case {
	t.Helper()
	n := New(Config{Topology: paper(), Seed: seed, Kinds: Kinds(), Redis: redis, ChaosBin: "bin", Say: t.Logf,
		Victim: func(r *rand.Rand) Victim { return Victim{"con_1", "spk_1", "key_1", "dec_1", "itm_1"} }})
	var all []Case
	for range count {
		c, ok := n.draw(nil)
		if !ok {
			t.Fatal("nothing to draw")
		}
		all = append(all, c)
	}
	return all
}

func names(all []Case) (out []string) {
	for _, c := range all {
		out = append(out, c.Kind+" "+c.Detail+" "+c.Hold.String())
	}
	return out
}

// A seed is a schedule.
func TestSeed(t *testing.T) {
	t.Parallel()
	one, same, other := names(drawn(t, 7, true, 300)), names(drawn(t, 7, true, 300)), names(drawn(t, 8, true, 300))
	if !slices.Equal(one, same) {
		t.Error("one seed, two schedules")
	}
	if slices.Equal(one, other) {
		t.Error("two seeds, one schedule")
	}
}

// Every kind that is possible comes up equally often.
func TestEveryKind(t *testing.T) {
	t.Parallel()
	counts := map[string]int{}
	for _, c := range drawn(t, 3, true, 14*20) {
		counts[c.Kind]++
	}
	for _, kind := range Kinds() {
		want := 20
		if kind == "N7" { // these disks cannot be filled
			want = 0
		}
		if counts[kind] != want {
			t.Errorf("%s came up %d times, want %d", kind, counts[kind], want)
		}
	}
}

// Without faults of Redis nothing touches it, nor a link to it.
func TestRedisIsLeftAlone(t *testing.T) {
	t.Parallel()
	for _, c := range drawn(t, 5, false, 1000) {
		for _, touched := range c.Touches {
			if touched == "redis" || len(touched) > 6 && touched[len(touched)-6:] == ">redis" {
				t.Fatalf("%s %s", c.Kind, c.Detail)
			}
		}
	}
}

type counted struct {
	injected, healed *atomic.Int64
	err              error
}

func (f counted) Inject(context.Context) error { f.injected.Add(1); return f.err }
func (f counted) Heal(ctx context.Context) error {
	f.healed.Add(1)
	return ctx.Err()
}

// What was injected is healed and recorded, also when the injection failed and when the run is over.
func TestHealsAlways(t *testing.T) {
	t.Parallel()
	var file bytes.Buffer
	recorder := history.NewRecorder(&file)
	n := New(Config{Recorder: recorder, Say: t.Logf})
	var injected, healed atomic.Int64
	over, cancel := context.WithCancel(t.Context())
	cancel()
	n.play(over, Case{Fault: counted{&injected, &healed, errors.New("no")}, Kind: "N1", Detail: "one", Hold: time.Hour})
	n.play(t.Context(), Case{Fault: counted{&injected, &healed, nil}, Kind: "N2", Detail: "two", Hold: time.Millisecond})
	if injected.Load() != 2 || healed.Load() != 2 || len(n.Failed()) != 1 || n.Counts()["N1"] != 1 {
		t.Errorf("injected %d, healed %d, failed %v, counts %v", injected.Load(), healed.Load(), n.Failed(), n.Counts())
	}
	if err := recorder.Flush(); err != nil {
		t.Fatal(err)
	}
	_, faults, err := history.Read(&file)
	if err != nil || len(faults) != 2 || faults[0].Kind != "N1" || faults[0].Until < faults[0].At {
		t.Errorf("%+v %v", faults, err)
	}
}

func TestClashes(t *testing.T) {
	t.Parallel()
	n := New(Config{})
	playing := []Case{{Touches: []string{"kafka"}}}
	if !n.clashes(Case{Touches: []string{"relay-1", "kafka"}}, playing) || n.clashes(Case{Touches: []string{"relay-1"}}, playing) {
		t.Error("wrong clashes")
	}
}

// Every rude request names the id that it must not leave anywhere, and none is one that a client of ours would write.
func TestRudeRequests(t *testing.T) {
	t.Parallel()
	f := &rude{victim: Victim{"con_1", "spk_1", "key_1", "dec_1", "itm_1"}}
	seen := map[string]bool{}
	random := rand.New(rand.NewPCG(1, 1))
	for i, attack := range f.attacks(random) {
		a := attack(id(random))
		if seen[a.text] {
			t.Errorf("attack %d is there twice", i)
		}
		seen[a.text] = true
		if !bytes.Contains([]byte(a.text), []byte(a.id)) {
			t.Errorf("attack %d does not carry its id", i)
		}
	}
}
