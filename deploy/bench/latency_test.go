package bench

import (
	"slices"
	"sync"
	"testing"
	"time"

	"storefront.internal/deploy/load"
)

// stopwatch measures the time from sending a signal to its arrival at the engine.
type stopwatch struct {
	mu   sync.Mutex
	sent map[string]time.Time
	took []time.Duration
}

func (w *stopwatch) send(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent[id] = time.Now()
}

func (w *stopwatch) arrive(id []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if at, known := w.sent[string(id)]; known {
		w.took = append(w.took, time.Since(at))
		delete(w.sent, string(id))
	}
}

// BenchmarkToEngine is the time from sending a signal until the engine has it, with everything running, at
// half of the rate that the machine sustains end to end.
func BenchmarkToEngine(b *testing.B) {
	s := newDeployment(b)
	watch := &stopwatch{sent: map[string]time.Time{}}
	engine := newEngine(b, s.Settings.EngineToken)
	engine.arrived = watch.arrive
	s.Settings.EngineURL, s.Settings.EngineSecret = engine.url, s.Settings.EngineToken
	edge := s.edge(noQuota...)
	s.relay()
	who := s.shopper(edge)
	rate := 0.0
	for range 4 { // a broker that has just begun compiles for a while
		rate = s.sustained(b, edge, who, engine) / 2
	}
	c := intake{node: edge}
	requests := c.load(who)
	next := requests.Request
	var turns [shoppers]int
	requests.Request = func(i int) []byte {
		text := next(i)
		if turns[i]++; turns[i]%10 == 0 {
			watch.send(load.FirstID(text))
		}
		return text
	}
	before := engine.got.Load()
	found, err := load.Open(requests, rate, 10*turn)
	check(b, err)
	engine.awaits(b, before+int64(len(found.Took)*signals))
	watch.mu.Lock()
	defer watch.mu.Unlock()
	slices.Sort(watch.took)
	p50, p99 := watch.took[len(watch.took)/2], watch.took[len(watch.took)*99/100]
	rows.add("sent → at the engine, %.0f req/s (half of what the machine sustains end to end): p50 %s  "+
		"p99 %s of %d", rate, p50.Round(time.Millisecond), p99.Round(time.Millisecond),
		len(watch.took))
	b.ReportMetric(float64(p99.Milliseconds()), "p99-ms")
	b.ReportMetric(0, "ns/op")
}

// sustained is the rate of a closed loop, counted until the engine has all signals.
func (s *deployment) sustained(b *testing.B, edge node, who load.Shopper, e *engine) float64 {
	b.Helper()
	begun, before := time.Now(), e.got.Load()
	c := intake{node: edge}
	found, err := load.Closed(c.load(who), 5*turn)
	check(b, err)
	e.awaits(b, before+int64(len(found.Took)*signals))
	return float64(len(found.Took)) / time.Since(begun).Seconds()
}
