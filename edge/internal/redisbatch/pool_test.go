package redisbatch

import (
	"context"
	"errors"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"storefront.internal/shared/settings"

	goredis "github.com/redis/go-redis/v9"
)

// slowly returns a pool of the server's whose dials wait until pass is closed, and count.
func slowly(t *testing.T, s *fakeServer) (p *connPool, pass chan struct{}, dials *atomic.Int32) {
	t.Helper()
	client := NewClient(settings.Redis{RedisAddrs: []string{s.listener.Addr().String()}}, time.Second)
	opts := *client.(*goredis.Client).Options()
	next := opts.Dialer
	pass, dials = make(chan struct{}), new(atomic.Int32)
	opts.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		dials.Add(1)
		select {
		case <-pass:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		return next(ctx, network, addr)
	}
	p = &connPool{opts: &opts}
	t.Cleanup(func() {
		p.close()
		_ = client.Close()
		_ = s.listener.Close()
		s.work.Wait()
	})
	return p, pass, dials
}

// TestSlowDial: a dial that takes longer than the round trip goes on, and one later takes its conn. Round
// trips that follow each other share one dial.
func TestSlowDial(t *testing.T) {
	t.Parallel()
	p, pass, dials := slowly(t, startServer(t))
	get := func() *Batch {
		b := &Batch{}
		b.Add("get", "k")
		return b
	}
	for range 3 {
		err := p.execute(time.Now().Add(10*time.Millisecond), []*Batch{get()})
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("got %v, want the deadline", err)
		}
	}
	close(pass)
	b := get()
	if err := p.execute(time.Now().Add(testTimeout), []*Batch{b}); err != nil || b.Text(0) == nil {
		t.Errorf("%v, %q", err, b.Text(0))
	}
	if n := dials.Load(); n != 1 {
		t.Errorf("%d dials, want 1", n)
	}
}

// TestWarm: the first round trips of a warm Batcher need no dial.
func TestWarm(t *testing.T) {
	t.Parallel()
	p, pass, dials := slowly(t, startServer(t))
	close(pass)
	b := newBatcher(p, 2, testTimeout)
	if err := b.Warm(t.Context()); err != nil || dials.Load() != 2 || len(p.idle) != 2 {
		t.Fatalf("%v, %d dials, %d idle conns", err, dials.Load(), len(p.idle))
	}
	if err := do(t.Context(), b, []string{"get", "k"}); err != nil || dials.Load() != 2 {
		t.Errorf("%v, %d dials", err, dials.Load())
	}
}
