package systemtest

import (
	"fmt"
	"math"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"storefront.internal/deploy/stack"
)

// An edge gets five times the load that it can handle, and reads of the catalog beside it. Every request is
// answered: a 202 means stored, and a refusal says when to come back. No read fails. `make soak` checks
// goodput, latency of what was admitted, memory and recovery.
//
// The capacity is bounded by EDGE_MAX_IN_FLIGHT and a slow link to Redis: about 150 requests a second on any
// machine. A bound by the processor would not do, since the generator shares the machine with the edge. The
// capacity is what as many clients as may be in flight achieve in a closed loop; the normal load is half of
// it.
func TestOverload(t *testing.T) {
	if soaking() { // alone: it measures
		testOverload(t)
		return
	}
	t.Parallel()
	testOverload(t)
}

const inWork = 16 // requests at a time

func testOverload(t *testing.T) {
	x := newDeployment(t)
	x.Settings.EngineURL = "" // what is delivered does not matter here, and costs
	far := openLink(t, x.Settings.RedisAddr)
	check(t, far.Slow(20*time.Millisecond, 0))
	edge := x.edge(fmt.Sprint("EDGE_MAX_IN_FLIGHT=", inWork),
		"EDGE_LOG_LEVEL=ERROR", "EDGE_REDIS_ADDRS="+
			far.Addr())
	x.relay()
	s := x.newStorefront()
	item := s.deliverAccepted(product("read", 1, "Read"))[0].EntityID
	reads := startReads(s, edge, item)
	g := newGenerator(s, edge, s.recommend(edge))

	step := time.Duration(soak(1, 10)) * time.Second
	g.run("warm-up", 50, step)
	capacity := float64(g.closed(inWork, step).taken) / step.Seconds()
	normal := g.run("0.5×", capacity/2, step)
	before := memory(t, edge, "VmRSS")
	peak := normal.goodput()
	var worst *ramp
	for _, times := range []float64{1, 2, 3, 4} {
		peak = max(peak, g.run(fmt.Sprint(times, "×"), times*capacity, step).goodput())
	}
	worst = g.run("5×", 5*capacity, time.Duration(soak(1, 60))*time.Second)
	peak = max(peak, worst.goodput())
	most := memory(t, edge, "VmHWM")
	recovery := g.recovery(capacity/2, 2*normal.percentile(99), soak(1, 20))
	for _, line := range g.lines {
		t.Log(line)
	}
	t.Logf("capacity %.0f req/s; goodput at 5× is %.0f %% of the peak; p99 of what was admitted %s, "+
		"normally %s; memory %d MiB, before %d MiB; recovered within %d s; %d reads of the catalog",
		capacity, 100*worst.goodput()/peak, worst.percentile(99), normal.percentile(99), most>>10,
		before>>10, recovery, reads.n.Load())

	close(reads.over)
	<-reads.done
	if err := reads.err; err != nil {
		t.Errorf("a read failed: %v", err)
	}
	if g.odd.Load() != nil {
		t.Errorf("an answer that is neither 202 nor 503 with Retry-After: %v", *g.odd.Load())
	}
	if soaking() {
		checkFigure(t, "an answer to everything", g.broken.Load() == 0)
		checkFigure(t, "goodput at 5× of the peak", worst.goodput()/peak >= 0.9)
		checkFigure(t, "p99 of what was admitted", worst.percentile(99) <= 2*normal.percentile(99))
		checkFigure(t, "memory", most <= 2*before+64<<10)
		checkFigure(t, "recovery", recovery <= 10)
	}
	accepted, sent := g.ids()
	x.awaitAllStored(t, s, accepted, sent)
}

func checkFigure(t *testing.T, what string, reached bool) {
	t.Helper()
	if !reached {
		t.Errorf("%s: not reached", what)
	}
}

// recovery is the first second of a normal load, counted from 1, in which nothing is refused and the latency
// is normal. The load lasts for the given seconds.
func (g *generator) recovery(rate float64, p99 time.Duration, seconds int) int {
	first := math.MaxInt
	for i := range seconds {
		r := g.run(fmt.Sprint("after ", i, " s"), rate, time.Second)
		if first > i && r.shed() == 0 && r.percentile(99) <= p99 {
			first = i + 1
		}
	}
	return first
}

// memory is a figure of /proc/<pid>/status, in KiB.
func memory(t *testing.T, n *stack.Process, name string) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.Pid()))
	check(t, err)
	kib := 0
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			_, err = fmt.Sscanf(rest, "%d kB", &kib)
			check(t, err)
		}
	}
	return kib
}

// steadyReads reads one item again and again.
type steadyReads struct {
	n          atomic.Int64
	over, done chan struct{}
	err        error // the first one; read after done
}

func startReads(s *storefront, edge *stack.Process, item string) *steadyReads {
	r := &steadyReads{over: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(r.done)
		for r.err == nil {
			select {
			case <-r.over:
				return
			case <-time.After(20 * time.Millisecond):
			}
			got, err := s.read(edge, item, "")
			switch {
			case err == nil && got.Status == http.StatusOK:
				r.n.Add(1)
			case !soaking() && (err != nil ||
				got.Status == http.StatusServiceUnavailable): // a machine without breath
			case err != nil:
				r.err = err
			default:
				r.err = fmt.Errorf("answer %d %s", got.Status, got.body)
			}
		}
	}()
	return r
}
