//go:build web

package webtest

import (
	"crypto/sha256"
	"runtime"
	"sync"
	"testing"
	"time"
)

const (
	paceEvery  = 100 * time.Millisecond
	paceRounds = 200    // of a piece of work, less than 10 ms
	paceMost   = 8      // a machine that is slower than this is not allowed more
	paceBytes  = 64_000 // of a round
)

// pace measures the machine: a fixed piece of work is done ten times a second, and what it takes, from the
// tick to its end, is compared with the fastest one.
type pace struct {
	mu      sync.Mutex
	best    time.Duration
	samples []paceSample
}

type paceSample struct {
	at   time.Time
	took time.Duration
}

func measurePace(t *testing.T) *pace {
	t.Helper()
	p := &pace{best: time.Hour}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		p.measure(stop)
	}()
	t.Cleanup(func() { close(stop); <-done })
	return p
}

func (p *pace) measure(stop <-chan struct{}) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	tick := time.NewTicker(paceEvery)
	defer tick.Stop()
	data := make([]byte, paceBytes)
	for {
		select {
		case at := <-tick.C:
			for range paceRounds {
				sum := sha256.Sum256(data)
				data[0] = sum[0]
			}
			took := time.Since(at)
			p.mu.Lock()
			p.samples = append(p.samples, paceSample{at, took})
			p.best = min(p.best, took)
			p.mu.Unlock()
		case <-stop:
			return
		}
	}
}

// slowdown is how many times longer than at best the work took between two times; at most paceMost.
func (p *pace) slowdown(from, to time.Time) float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	var sum time.Duration
	n := 0
	for _, s := range p.samples {
		if s.at.After(from.Add(-paceEvery)) && s.at.Before(to.Add(paceEvery)) {
			sum += s.took
			n++
		}
	}
	if n == 0 {
		return 1
	}
	return min(float64(sum)/float64(n)/float64(p.best), paceMost)
}
