package check

import (
	"strings"
	"testing"
	"time"

	"storefront.internal/deploy/faults/collect"
	"storefront.internal/deploy/faults/history"
	"storefront.internal/deploy/faults/liveness"
)

// outage adds a fault of fourteen seconds that begins after six, with a steady call of each operation every
// 50 ms. Of those that begin in the fault, a share succeeds, and the others are answered 503 after a time.
func (w *scene) outage(name string, share int, refusal time.Duration) *history.Fault {
	begin := w.clock
	at, until := begin+int64(6*time.Second), begin+int64(20*time.Second)
	n := 0
	for t := begin; t < until+int64(2*time.Second); t += int64(50 * time.Millisecond) {
		for _, op := range []history.Op{history.Signals, history.Item, history.Recommend, history.Observe} {
			w.calls++
			n++
			begin := history.Event{Call: w.calls, Kind: history.Invoke, At: t, Op: op, Steady: true,
				Connection: con, Edge: "edge-1"}
			end := history.Event{Call: w.calls, Kind: history.OK, At: t + 1000, Op: op, Status: 200}
			if op == history.Recommend {
				end.Decision = dec
			}
			if t >= at && t < until && n/4%100 >= share {
				end.Kind, end.Status, end.At = history.Info, 503, t+int64(refusal)
			}
			w.events = append(w.events, begin, end)
		}
	}
	w.clock = until + int64(10*time.Second)
	w.faults = append(w.faults, history.Fault{At: at, Until: until, Kind: "N16", Case: name, Target: "x",
		Recovered: until + int64(time.Second)})
	return &w.faults[len(w.faults)-1]
}

func TestGoodput(t *testing.T) {
	for _, c := range []struct {
		what, name string
		share      int
		refusal    time.Duration
		change     func(*scene, *history.Fault)
		want       string
	}{
		{"all succeed", "postgres hung", 100, 0, nil, ""},
		{"a few fail", "postgres hung", 90, 0, nil, ""},
		{"too many fail", "postgres hung", 50, 0, nil, "L1"},
		{"the answers are late", "engine hung", 0, 5 * time.Second, nil, "L4"},
		{"Redis lost its claims: an answer is enough, but items go on", "postgres hung", 50, 0,
			func(_ *scene, f *history.Fault) { f.Cold = true }, "L1"},
		{"the machine stalls", "postgres hung", 50, 0, func(w *scene, f *history.Fault) {
			w.stalls = []history.Stall{{At: f.At, Until: f.Until}}
		}, ""},
		{"the calls are of the edge that is down", "edge hung", 0, 0,
			func(_ *scene, f *history.Fault) { f.Target = "edge-1" }, ""},
		{"a part is lost", "broker black-holed", 85, 0, nil, ""},
		{"most is lost", "broker black-holed", 30, 0, nil, "L3"},
		{"the recovery is slow", "redis hung", 100, 0, func(_ *scene, f *history.Fault) {
			f.Recovered += int64(liveness.RecoveryLimit)
		}, "L7"},
		{"an unfinished fault is not judged", "postgres hung", 0, 0,
			func(_ *scene, f *history.Fault) { f.Case, f.Recovered = "", 0 }, ""},
	} {
		t.Run(c.what, func(t *testing.T) {
			w := newScene()
			f := w.outage(c.name, c.share, c.refusal)
			if c.change != nil {
				c.change(w, f)
			}
			findings, _ := w.run()
			got := map[string]bool{}
			for _, f := range findings {
				if strings.HasPrefix(f.Invariant, "L") {
					got[f.Invariant] = true
				}
			}
			if len(got) > 1 || c.want != "" && !got[c.want] || c.want == "" && len(got) > 0 {
				t.Errorf("want %q, got %v", c.want, findings)
			}
		})
	}
}

// TestRefusalsInTime checks that recording may be refused while Redis is down, if that is soon.
func TestRefusalsInTime(t *testing.T) {
	for refusal, want := range map[time.Duration]bool{time.Second: false, 2 * time.Second: true} {
		w := newScene()
		w.outage("redis hung", 0, refusal)
		findings, _ := w.run()
		found := false
		for _, f := range findings {
			found = found || f.Invariant == "L2" && strings.Contains(f.Detail, "calls of signals")
		}
		if found == want {
			continue
		}
		t.Errorf("refused after %s: %v", refusal, findings)
	}
}

func TestCasesHaveProperties(t *testing.T) {
	known := map[string]bool{}
	for _, i := range Invariants() {
		known[i.Name] = true
	}
	for _, brokers := range []int{1, 3} {
		for _, c := range liveness.Cases(brokers) {
			found, ok := liveness.Find(c.Name())
			if !ok || found.Property != c.Property || !known[c.Property] {
				t.Errorf("%s: %+v", c.Name(), found)
			}
		}
	}
}

func TestStuck(t *testing.T) {
	w := newScene()
	w.state.Stuck = []collect.Stuck{{What: "a dead letter is left", Connection: con, ID: "obs_1"}}
	if findings, _ := w.run(); len(findings) != 1 || findings[0].Invariant != "L8" {
		t.Error(findings)
	}
	w.state.Stuck[0].Connection = "con_of_others"
	if findings, _ := w.run(); len(findings) != 0 {
		t.Error(findings)
	}
}
