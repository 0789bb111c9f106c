package systemtest

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"storefront.internal/deploy/stack"
	"storefront.internal/deploy/stack/client"
)

// One storefront sends twenty times its quota, and the engine takes less than the quota lets through. The
// others are answered as before and their deliveries go on; what is over the quota gets a 429. `make soak`
// checks the figures.
func TestNoisyTenant(t *testing.T) {
	t.Parallel()
	quota, enginePace := soak(100, 400), soak(75, 300) // signals a second
	x := newDeployment(t)
	edge := x.edge(fmt.Sprint("EDGE_RATE_PER_KEY=", quota), fmt.Sprint("EDGE_RATE_BURST=", quota))
	// the slow engine takes its time for a whole request, and for those before it
	x.relay("RELAY_ENGINE_TIMEOUT=30s")
	noisy := startTenant(x.newStorefront(), edge, 50, 50*time.Second/time.Duration(20*quota))
	noisy.hold.Store(true)
	others := make([]*tenant, soak(4, 50))
	for i := range others {
		others[i] = startTenant(x.newStorefront(), edge, 2, time.Duration(len(others))*20*time.Millisecond)
	}
	length := time.Duration(soak(2, 60)) * time.Second
	x.engine.pace.Store(int64(enginePace))
	measure(others) // what the start cost is not counted
	time.Sleep(length)
	before := measure(others)
	noisy.hold.Store(false)
	oldest, noisiest := 0, 0
	for begun := time.Now(); time.Since(begun) < length; time.Sleep(500 * time.Millisecond) {
		q, slice, err := x.queue(noisy.shop)
		if err != nil {
			continue // read again: the figures are of what was read
		}
		noisiest = max(noisiest, slice.Pending)
		for _, c := range q.Connections {
			if c.ConnectionID != noisy.shop.ConnectionID {
				oldest = max(oldest, c.OldestPendingSeconds)
			}
		}
	}
	eventually(t, time.Minute, "the noisy one is over its quota", func() error {
		if noisy.limited.Load() == 0 || noisy.taken.Load() == 0 {
			return fmt.Errorf("%d batches were taken, %d were over it", noisy.taken.Load(),
				noisy.limited.Load())
		}
		return nil
	})
	after := measure(others)
	x.engine.pace.Store(0)
	for _, v := range append(others, noisy) {
		v.stop()
		if v.wrong != nil {
			t.Errorf("%s: %v", v.shop.ConnectionID, v.wrong)
		}
	}
	t.Logf("%d others: p99 %s, before %s; their oldest pending delivery %d s; the noisy one: %d batches "+
		"taken, %d over its quota, %d pending at most",
		len(others), after, before, oldest, noisy.taken.Load(), noisy.limited.Load(), noisiest)
	if soaking() {
		checkFigure(t, "p99 of the others", after <= 2*before)
		checkFigure(t, "oldest pending delivery of the others", oldest <= 60)
	}
	for _, v := range append(others, noisy) {
		x.awaitAllStored(t, v.shop, v.ids, v.sent)
	}
}

// tenant is a storefront that sends at its own pace, whatever it is answered.
type tenant struct {
	shop           *storefront
	hold           atomic.Bool
	taken, limited atomic.Int64
	over           chan struct{}
	all            sync.WaitGroup

	mu        sync.Mutex
	took      []time.Duration
	ids, sent []string
	wrong     error
}

func startTenant(s *storefront, edge *stack.Process, size int, every time.Duration) *tenant {
	v := &tenant{shop: s, over: make(chan struct{})}
	d := s.recommend(edge)
	tick := time.NewTicker(every)
	for range 8 {
		v.all.Go(func() {
			defer tick.Stop()
			for {
				select {
				case <-v.over:
					return
				case <-tick.C:
				}
				if !v.hold.Load() {
					v.send(edge, cartBatch(d, size))
				}
			}
		})
	}
	return v
}

func (v *tenant) send(edge *stack.Process, batch []client.Signal) {
	a, err := v.shop.send(edge, batch, 20*time.Second)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.sent = append(v.sent, idsOf(batch)...)
	switch {
	case err == nil && a.Status == http.StatusAccepted:
		v.taken.Add(1)
		v.took = append(v.took, a.Took)
		v.ids = append(v.ids, idsOf(batch)...)
	case err == nil && a.Status == http.StatusTooManyRequests:
		v.limited.Add(1)
	case err != nil, a.Status == http.StatusServiceUnavailable: // a busy machine; not counted
	case v.wrong == nil:
		v.wrong = fmt.Errorf("answer %+v", a)
	}
}

func (v *tenant) stop() {
	close(v.over)
	v.all.Wait()
}

// measure is the 99th percentile of all latencies since the last call.
func measure(all []*tenant) time.Duration {
	var took []time.Duration
	for _, v := range all {
		v.mu.Lock()
		took = slices.Concat(took, v.took)
		v.took = nil
		v.mu.Unlock()
	}
	return percentile(took, 99)
}
