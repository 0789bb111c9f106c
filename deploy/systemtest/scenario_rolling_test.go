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

// One of two edges at a time is stopped by SIGTERM and replaced while clients send; a batch that got no
// response or a 503 is sent again over the other edge. Nothing is lost or stored twice, and what was answered
// with 202 is stored. `make soak` stops one every 30 s and counts broken connections.
func TestRollingStops(t *testing.T) {
	t.Parallel()
	x := newDeployment(t)
	b := &balancer{edges: []*stack.Process{x.edge(), x.edge()}}
	x.relay()
	s := x.newStorefront()
	l := startRolling(s, b, s.recommend(b.edges[0]))
	for i := range soak(2, 10) {
		l.more(t, 100)
		if soaking() {
			time.Sleep(27 * time.Second) // the stop takes three more
		}
		gone := b.get(i % 2)
		x.stop(gone) // in order: it fails when the edge has to be killed
		if ending := gone.Ending(); ending != "without an error" {
			t.Errorf("a stopped edge ended %s", ending)
		}
		l.more(t, 50) // at the other one
		b.set(i%2, x.edge())
	}
	l.more(t, 100)
	l.stop()
	for _, err := range l.wrong {
		t.Error(err)
	}
	share := float64(l.broken.Load()) / float64(l.requests.Load())
	t.Logf("%d requests, %d broken connections (%.4f %%), %d answers of 503, %d signals", l.requests.Load(),
		l.broken.Load(), 100*share, l.refused.Load(), len(l.ids))
	if soaking() && share > 0.001 {
		t.Errorf("%.4f %% of the connections broke", 100*share)
	}
	x.awaitAllStored(t, s, l.ids, l.ids)
}

// balancer spreads requests over the edges that were ready when it probed them last, as the one of a cluster
// does.
type balancer struct {
	mu    sync.Mutex
	edges []*stack.Process
	ready [2]atomic.Bool
	next  atomic.Int64
}

func (b *balancer) get(i int) *stack.Process {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.edges[i]
}

func (b *balancer) set(i int, n *stack.Process) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.edges[i] = n
}

// probe asks both edges once.
func (b *balancer) probe() {
	for i := range b.ready {
		res, err := http.Get("http://" + b.get(i).Admin + "/readyz")
		b.ready[i].Store(err == nil && res.StatusCode == http.StatusOK)
		if err == nil {
			res.Body.Close()
		}
	}
}

// pick is the next edge that was ready, or any.
func (b *balancer) pick() *stack.Process {
	i := int(b.next.Add(1)) % len(b.ready)
	if other := (i + 1) % len(b.ready); !b.ready[i].Load() && b.ready[other].Load() {
		i = other
	}
	return b.get(i)
}

// rolling are clients that send new batches, each until it is answered by a 202.
type rolling struct {
	requests, broken, refused, taken atomic.Int64
	over                             chan struct{}
	all                              sync.WaitGroup

	mu    sync.Mutex
	ids   []string // of batches that were answered by a 202
	wrong []error
}

func startRolling(s *storefront, b *balancer, d client.Decision) *rolling {
	l := &rolling{over: make(chan struct{})}
	b.probe()
	l.all.Go(func() {
		for l.pause(100 * time.Millisecond) {
			b.probe()
		}
	})
	for range 8 {
		l.all.Go(func() {
			for l.pause(20 * time.Millisecond) {
				l.send(s, b, cartBatch(d, 3))
			}
		})
	}
	return l
}

// send sends one batch until it is stored.
func (l *rolling) send(s *storefront, b *balancer, batch []client.Signal) {
	for until := time.Now().Add(3 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		a, err := s.send(b.pick(), batch, 10*time.Second)
		l.requests.Add(1)
		switch {
		case time.Now().After(until):
			err = fmt.Errorf("no 202 within three minutes: %+v %w", a, err)
		case err != nil:
			l.broken.Add(1)
			continue
		case a.Status == http.StatusServiceUnavailable:
			l.refused.Add(1)
			continue
		case a.Status != http.StatusAccepted || a.count("rejected") > 0:
			err = fmt.Errorf("answer %+v", a)
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.ids = append(l.ids, idsOf(batch)...)
		if err != nil {
			l.wrong = append(l.wrong, err)
		}
		l.taken.Add(1)
		return
	}
}

// pause reports false at the end.
func (l *rolling) pause(d time.Duration) bool {
	select {
	case <-l.over:
		return false
	case <-time.After(d):
		return true
	}
}

// more waits until n more batches were accepted.
func (l *rolling) more(t *testing.T, n int64) {
	t.Helper()
	want := l.taken.Load() + n
	eventually(t, 2*time.Minute, "more batches", func() error {
		if got := l.taken.Load(); got < want {
			return fmt.Errorf("%d of %d", got, want)
		}
		return nil
	})
}

func (l *rolling) stop() {
	close(l.over)
	l.all.Wait()
}

// awaitAllStored waits until every accepted signal is stored once and delivered, and checks that only sent
// signals are stored.
func (x *deployment) awaitAllStored(t *testing.T, s *storefront, accepted, sent []string) {
	t.Helper()
	stored := map[string]int{}
	eventually(t, 2*time.Minute, "every accepted signal is stored", func() error {
		clear(stored)
		x.column("SELECT signal_id FROM relay.signals WHERE connection_id = $1",
			func(id string) { stored[id]++ }, s.ConnectionID)
		missing := 0
		for _, id := range accepted {
			if stored[id] == 0 {
				missing++
			}
		}
		if missing > 0 {
			return fmt.Errorf("%d of %d are missing", missing, len(accepted))
		}
		return nil
	})
	known := slices.Sorted(slices.Values(sent))
	for id, n := range stored {
		if _, ok := slices.BinarySearch(known, id); !ok || n != 1 {
			t.Errorf("signal %s: stored %d times, sent by us: %t", id, n, ok)
		}
	}
	if x.hasRelay {
		eventually(t, 3*time.Minute, "everything is delivered", func() error {
			_, slice, err := x.queue(s)
			if err == nil && (slice.Pending > 0 || slice.DeadLast24h > 0) {
				err = fmt.Errorf("%+v", slice)
			}
			return err
		})
	}
}

func (x *deployment) column(query string, each func(string), args ...any) {
	x.t.Helper()
	rows, err := x.pool.Query(x.t.Context(), query, args...)
	check(x.t, err)
	defer rows.Close()
	for rows.Next() {
		var v string
		check(x.t, rows.Scan(&v))
		each(v)
	}
	check(x.t, rows.Err())
}
