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

	goredis "github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"storefront.internal/shared/settings"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestPipelineAnswersEverybody: each of many gets the answers of its own commands.
func TestPipelineAnswersEverybody(t *testing.T) {
	client, prefix := open(t)
	p := newPipeline(client, 2, patience)
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			ctx := context.Background()
			key, value := fmt.Sprint(prefix, i), fmt.Sprint("v", i)
			get := goredis.NewStringCmd(ctx, "get", key)
			none := goredis.NewStringCmd(ctx, "get", key+":none")
			if err := p.Do(ctx, []goredis.Cmder{goredis.NewStatusCmd(ctx, "set", key, value, "px", 60000), get, none}); err != nil || get.Val() != value || none.Val() != "" {
				t.Errorf("%s: %q, %v", key, get.Val(), err)
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
	p := newPipeline(client, 1, patience)
	ctx := t.Context()
	set := goredis.NewStatusCmd(ctx, "set", prefix+"text", "x", "px", 60000)
	if err := p.Do(ctx, []goredis.Cmder{set, goredis.NewIntCmd(ctx, "incr", prefix+"text")}); err == nil {
		t.Error("an error answer went unnoticed")
	}
	if err := p.Do(ctx, []goredis.Cmder{goredis.NewStringCmd(ctx, "get", prefix+"text")}); err != nil {
		t.Errorf("the next request failed too: %v", err)
	}
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
			get := func() error {
				ctx := t.Context()
				return p.Do(ctx, []goredis.Cmder{goredis.NewStringCmd(ctx, "get", "x")})
			}
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
	p := newPipeline(client, 1, patience)
	p.out = 1 // a flight is out, and does not come back yet
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- p.Do(ctx, []goredis.Cmder{goredis.NewStatusCmd(ctx, "set", prefix+"w", "1", "px", 60000)})
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
