package redisbatch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"storefront.internal/shared/settings"
	"storefront.internal/shared/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testTimeout is the tests' timeout: a busy machine is no dead Redis.
const testTimeout = 30 * time.Second

// open returns a client of the real server and a prefix of the test's own.
func open(t testing.TB) (goredis.UniversalClient, string) {
	t.Helper()
	addr, prefix := testkit.Redis(t)
	client := NewClient(settings.Redis{RedisAddrs: []string{addr}}, testTimeout)
	t.Cleanup(func() { _ = client.Close() })
	return client, prefix
}

func newTestBatcher(t testing.TB, client goredis.UniversalClient, slots int) *Batcher {
	b := NewBatcher(client, slots, testTimeout)
	t.Cleanup(b.Close)
	return b
}

// do executes commands whose replies do not matter.
func do(ctx context.Context, b *Batcher, commands ...[]string) error {
	batch := b.Get()
	defer b.Put(batch)
	for _, words := range commands {
		batch.Add(words...)
	}
	return b.Do(ctx, batch)
}

// gate is a transport that holds each round trip until it is open.
type gate struct {
	transport
	entered chan []*Batch // the round trips that have begun
	open    chan struct{} // closed to let them pass
}

func newGate(t transport) *gate {
	return &gate{transport: t, entered: make(chan []*Batch, 100), open: make(chan struct{})}
}

func (g *gate) execute(deadline time.Time, batches []*Batch) error {
	open := g.open
	g.entered <- batches
	<-open
	return g.transport.execute(deadline, batches)
}

// noServer is a transport whose commands all succeed.
type noServer struct{}

func (noServer) execute(_ time.Time, batches []*Batch) error {
	for _, b := range batches {
		b.resetReplies()
	}
	return nil
}

func (noServer) warm(context.Context, int) error { return nil }

func (noServer) close() {}

// waitQueued waits until n batches are in the queue.
func waitQueued(b *Batcher, n int) {
	for queued := -1; queued != n; runtime.Gosched() {
		b.mu.Lock()
		queued = len(b.queue)
		b.mu.Unlock()
	}
}

// TestOwnReplies: each of many requests gets the replies to its own commands.
func TestOwnReplies(t *testing.T) {
	client, prefix := open(t)
	b := newTestBatcher(t, client, 2)
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			key, value := fmt.Sprint(prefix, i), fmt.Sprint("v", i)
			batch := b.Get()
			defer b.Put(batch)
			batch.Add("set", key, value, "px", "60000")
			batch.Add("get", key)
			batch.Add("get", key+":none")
			if err := b.Do(context.Background(), batch); err != nil || string(batch.Text(1)) != value ||
				!batch.IsNil(2) {
				t.Errorf("%s: %v", key, err)
			}
		})
	}
	wg.Wait()
	if b.taken != 0 || len(b.queue) != 0 {
		t.Errorf("%d slots taken, %d batches in the queue", b.taken, len(b.queue))
	}
}

// TestErrorReply: an error reply is an error of its own batch only.
func TestErrorReply(t *testing.T) {
	client, prefix := open(t)
	b := newTestBatcher(t, client, 1)
	if err := do(t.Context(), b, []string{"set", prefix + "text", "x", "px", "60000"},
		[]string{"incr", prefix + "text"}); err == nil {
		t.Error("the error reply is not reported")
	}
	if err := do(t.Context(), b, []string{"get", prefix + "text"}); err != nil {
		t.Errorf("the next batch failed too: %v", err)
	}
}

// silent is the address of a server that accepts conns and never replies.
func silent(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}

// TestUnreachable: a dead Redis costs the timeout a few times, and then nothing.
func TestUnreachable(t *testing.T) {
	for name, addr := range map[string]string{"silent": silent(t), "refused": "127.0.0.1:1"} {
		t.Run(name, func(t *testing.T) {
			client := NewClient(settings.Redis{RedisAddrs: []string{addr}}, Timeout)
			t.Cleanup(func() { _ = client.Close() })
			b := NewBatcher(client, 2, Timeout)
			get := func() error { return do(t.Context(), b, []string{"get", "x"}) }
			b.failingSince = time.Now().Add(-patience)
			for range openAfter {
				start := time.Now()
				if err := get(); err == nil || errors.Is(err, ErrUnavailable) {
					t.Errorf("try: %v", err)
				}
				if took := time.Since(start); took > 10*time.Second {
					t.Errorf("took %v", took)
				}
			}
			if err := get(); !errors.Is(err, ErrUnavailable) {
				t.Errorf("after %d failures: %v", openAfter, err)
			}
			b.Close()
		})
	}
}

// TestCancelInQueue: a batch whose caller gives up in the queue is not executed.
func TestCancelInQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate(noServer{})
		b := newBatcher(g, 1, time.Second)
		go func() { _ = do(t.Context(), b, []string{"get", "first"}) }()
		<-g.entered
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- do(ctx, b, []string{"get", "second"}) }()
		synctest.Wait() // it is in the queue
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		close(g.open)
		if err := do(t.Context(), b, []string{"get", "third"}); err != nil {
			t.Error(err)
		}
		if batches := <-g.entered; len(batches) != 1 || len(g.entered) != 0 {
			t.Errorf("%d batches, and %d more round trips", len(batches), len(g.entered))
		}
	})
}

// TestOneRoundTrip: the batches that queued up behind a round trip share the next one.
func TestOneRoundTrip(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate(noServer{})
		b := newBatcher(g, 1, time.Second)
		for range 10 {
			go func() { _ = do(t.Context(), b, []string{"get", "x"}) }()
		}
		synctest.Wait()
		close(g.open)
		synctest.Wait()
		if first, second := <-g.entered, <-g.entered; len(first) != 1 || len(second) != 9 ||
			len(g.entered) != 0 {
			t.Errorf("round trips of %d and %d batches, and %d more", len(first), len(second), len(g.entered))
		}
	})
}

// failing is a transport that fails while it is down.
type failing struct{ down bool }

func (f *failing) execute(time.Time, []*Batch) error {
	if f.down {
		return errProtocol
	}
	return nil
}

func (*failing) warm(context.Context, int) error { return nil }

func (*failing) close() {}

// expecter returns a function that executes a batch, which must end with an error.
func expecter(t *testing.T, b *Batcher) func(want error) {
	return func(want error) {
		t.Helper()
		if err := do(t.Context(), b, []string{"get", "x"}); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
}

// TestStall: round trips that all fail in a moment, as after a stall of the machine, do not open the breaker.
func TestStall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &failing{down: true}
		expect := expecter(t, newBatcher(f, 1, time.Second))
		for range 10 {
			expect(errProtocol)
			time.Sleep(patience / 20)
		}
		f.down = false
		expect(errNotSent) // it succeeds, and this transport leaves the batch as it is
		time.Sleep(time.Hour)
		f.down = true
		for range openAfter { // the first failure after a rest begins to count anew
			expect(errProtocol)
		}
		f.down = false
		expect(errNotSent)
	})
}

// TestBreaker: when nothing has succeeded for a second, nothing is tried for a while, then one batch is.
func TestBreaker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &failing{down: true}
		b := newBatcher(f, 1, time.Second)
		expect := expecter(t, b)
		expect(errProtocol)
		time.Sleep(patience)
		for range openAfter {
			expect(errProtocol)
		}
		for range 2 {
			expect(ErrUnavailable)
			time.Sleep(openFor)
			expect(errProtocol) // the probe
		}
		expect(ErrUnavailable)
		time.Sleep(openFor)
		f.down = false
		expect(errNotSent) // the probe; it succeeds, and this transport leaves the batch as it is
		expect(errNotSent)
	})
}

// TestSharedCommand: batches of one round trip that share a command have it executed once, behind their own
// commands. To a cluster each sends it for itself.
func TestSharedCommand(t *testing.T) {
	t.Parallel()
	client, prefix := open(t)
	pool := &connPool{opts: client.(*goredis.Client).Options()}
	t.Cleanup(pool.close)
	for name, c := range map[string]struct {
		transport transport
		want      [3]int64
	}{"single": {pool, [...]int64{2, 2, 1}}, "cluster": {&cluster{client: client}, [...]int64{1, 2, 1}}} {
		counter := prefix + name
		shared := AppendWords(AppendHeader(nil, 2), "incr", counter)
		var batches []*Batch
		for range 3 {
			b := &Batch{}
			b.Add("get", counter)
			batches = append(batches, b)
		}
		batches[0].Share(shared)
		batches[1].Share(shared)
		batches[2].Share(AppendWords(AppendHeader(nil, 2), "incr", counter+"-other"))
		if name == "single" {
			batches[1].Add("incr", counter) // before the shared command, although it comes later
		}
		if err := c.transport.execute(time.Now().Add(testTimeout), batches); err != nil {
			t.Fatal(name, err)
		}
		for i, b := range batches {
			if b.err != nil || b.Shared() != c.want[i] || len(b.replies) != b.commands {
				t.Errorf("%s: batch %d: %v, %d, %+v", name, i, b.err, b.Shared(), b.replies)
			}
		}
		failed := &Batch{}
		failed.Share(AppendWords(AppendHeader(nil, 1), "incr"))
		if err := c.transport.execute(time.Now().Add(testTimeout), []*Batch{failed}); err != nil ||
			failed.err == nil {
			t.Errorf("%s: %v, %v", name, err, failed.err)
		}
	}
}
