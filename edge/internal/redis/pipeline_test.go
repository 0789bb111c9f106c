package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	goredis "github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"storefront.internal/shared/settings"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestPipelineAnswersEverybody: each of many gets the answers of its own commands.
func TestPipelineAnswersEverybody(t *testing.T) {
	client, prefix := open(t)
	p := pipeline(t, client, 2)
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			key, value := fmt.Sprint(prefix, i), fmt.Sprint("v", i)
			b := p.batch()
			defer p.free(b)
			b.add("set", key, value, "px", "60000")
			b.add("get", key)
			b.add("get", key+":none")
			if err := p.Do(context.Background(), b); err != nil || string(b.text(1)) != value || !b.isNil(2) {
				t.Errorf("%s: %v", key, err)
			}
		})
	}
	wg.Wait()
	if p.out != 0 || len(p.queue) != 0 {
		t.Errorf("%d flights out, %d wait", p.out, len(p.queue))
	}
}

// TestPipelineErrors: an error answer is its own request's.
func TestPipelineErrors(t *testing.T) {
	client, prefix := open(t)
	p := pipeline(t, client, 1)
	if err := ask(t.Context(), p, []string{"set", prefix + "text", "x", "px", "60000"}, []string{"incr", prefix + "text"}); err == nil {
		t.Error("an error answer went unnoticed")
	}
	if err := ask(t.Context(), p, []string{"get", prefix + "text"}); err != nil {
		t.Errorf("the next request failed too: %v", err)
	}
}

func pipeline(t testing.TB, client goredis.UniversalClient, flights int) *Pipeline {
	p := newPipeline(client, flights, patience)
	t.Cleanup(p.Close)
	return p
}

// ask sends commands whose answers do not matter.
func ask(ctx context.Context, p *Pipeline, commands ...[]string) error {
	b := p.batch()
	defer p.free(b)
	for _, words := range commands {
		b.add(words...)
	}
	return p.Do(ctx, b)
}

// silent is a server that takes connections and never answers.
func silent(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}

// TestPipelineOutOfReach: a dead Redis costs its budget a few times, and then nothing.
func TestPipelineOutOfReach(t *testing.T) {
	for name, addr := range map[string]string{"silent": silent(t), "refused": "127.0.0.1:1"} {
		t.Run(name, func(t *testing.T) {
			client := NewClient(settings.Redis{RedisAddrs: []string{addr}})
			t.Cleanup(func() { _ = client.Close() })
			p := NewPipeline(client, 2)
			get := func() error { return ask(t.Context(), p, []string{"get", "x"}) }
			for range breakAfter {
				start := time.Now()
				if err := get(); err == nil || errors.Is(err, errOpen) {
					t.Errorf("try: %v", err)
				}
				if took := time.Since(start); took > 10*time.Second {
					t.Errorf("took %v", took)
				}
			}
			if err := get(); !errors.Is(err, errOpen) {
				t.Errorf("after %d failures: %v", breakAfter, err)
			}
		})
	}
}

// TestPipelineWithdraw: who gives up while waiting was never sent.
func TestPipelineWithdraw(t *testing.T) {
	client, prefix := open(t)
	p := pipeline(t, client, 1)
	p.out = 1 // a flight is out, and does not come back yet
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- ask(ctx, p, []string{"set", prefix + "w", "1", "px", "60000"})
	}()
	for waiting := 0; waiting == 0; runtime.Gosched() {
		p.mu.Lock()
		waiting = len(p.queue)
		p.mu.Unlock()
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	p.land([]*batch{{}})
	if n := client.Exists(t.Context(), prefix+"w").Val(); n != 0 || p.out != 0 {
		t.Errorf("sent all the same: %d, %d out", n, p.out)
	}
}

func TestBreaker(t *testing.T) {
	now := time.Unix(0, 0)
	b := breaker{now: func() time.Time { return now }}
	f := func(want bool) {
		t.Helper()
		if got := b.allow(); got != want {
			t.Errorf("allow %v, want %v", got, want)
		}
	}
	for range breakAfter {
		f(true)
		b.report(false)
	}
	f(false)
	now = now.Add(breakFor)
	f(true)  // the one that tries
	f(false) // the others do not
	b.report(false)
	f(false)
	now = now.Add(breakFor)
	f(true)
	b.report(true)
	f(true)
	f(true)
}

// newGuarded starts a server that wants to know who asks.
func newGuarded(t *testing.T, opts *goredis.Options) string {
	t.Helper()
	server := miniredis.RunT(t)
	if opts.Username == "" {
		server.RequireAuth(opts.Password)
	} else {
		server.RequireUserAuth(opts.Username, opts.Password)
	}
	return server.Addr()
}
