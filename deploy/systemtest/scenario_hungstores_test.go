package systemtest

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"storefront.internal/deploy/stack"
	"storefront.internal/deploy/stack/client"
)

// PostgreSQL is stopped by a signal: it keeps its connections, accepts new ones, and answers nothing. While
// Redis has its claims, late signals, which are looked up in the ledger, are accepted without it. When Redis
// has lost them too, batches fail fast with a Retry-After, and are accepted once PostgreSQL goes on. In the
// end each signal is stored once.
func TestPostgresHangs(t *testing.T) {
	t.Parallel()
	x := newDeploymentWithStores(t)
	edge := x.edge()
	x.relay()
	s := x.newStorefront()
	d := s.recommend(edge)
	known := lateSignal(d)
	s.must(edge, known)
	x.awaitDelivered(t, s, idsOf(known), 40*time.Second)
	item := s.deliverAccepted(product("hung", 1, "Hung"))[0].EntityID
	eventually(t, 20*time.Second, "the item is read", func() error {
		return statusIs(s.at(edge).GetItem(context.Background(), item, ""), http.StatusOK)
	})

	check(t, x.Postgres.Pause())
	warm := s.sendAtOnce(t, edge, d, 200)
	warm.expect(t, "Redis has its claims", http.StatusAccepted)
	if r := s.at(edge).GetItem(context.Background(), item, ""); r.Status != http.StatusOK {
		t.Errorf("an item: %s", r)
	}
	x.forgetClaims(t)
	cold := s.sendAtOnce(t, edge, d, 200)
	cold.expect(t, "Redis lost its claims", http.StatusServiceUnavailable)
	if n := edge.Exits(); len(n) > 0 {
		t.Errorf("the edge ended: %v", n)
	}
	check(t, x.Postgres.Resume())

	ids := idsOf(known)
	for i, batch := range slices.Concat(warm.batches, cold.batches) {
		a := s.resend(edge, batch, 60*time.Second)
		if i < len(warm.batches) && a.count("accepted")+a.count("duplicate") != 1 || len(a.Results) != 1 {
			t.Errorf("a resend: %+v", a)
		}
		ids = append(ids, idsOf(batch)...)
	}
	x.awaitDelivered(t, s, ids, 60*time.Second)
	if a := s.resend(edge, known, 20*time.Second); a.count("duplicate") != 1 {
		t.Errorf("a stored signal, sent again: %+v", a)
	}
	x.awaitDrained(t, s)
}

// lateSignal is a batch of one new signal that is so old that its claim may have expired.
func lateSignal(d client.Decision) []client.Signal {
	batch := cartBatch(d, 1)
	batch[0].OccurredAt = client.Timestamp(time.Now().Add(-50 * time.Minute))
	return batch
}

// burst is what was sent at once, and the responses.
type burst struct {
	batches   [][]client.Signal
	responses []response
	errs      []error
}

// sendAtOnce sends n batches of one late signal each.
func (s *storefront) sendAtOnce(t *testing.T, edge *stack.Process, d client.Decision, n int) *burst {
	t.Helper()
	b := &burst{responses: make([]response, n), errs: make([]error, n)}
	var wg sync.WaitGroup
	for i := range n {
		b.batches = append(b.batches, lateSignal(d))
		wg.Go(func() { b.responses[i], b.errs[i] = s.send(edge, b.batches[i], 20*time.Second) })
	}
	wg.Wait()
	return b
}

// expect checks that every response has the status, and logs the latencies. Their bound is far above what is
// measured on a machine that does nothing else, and below the deadline of a request.
func (b *burst) expect(t *testing.T, when string, status int) {
	t.Helper()
	var took []time.Duration
	for i, r := range b.responses {
		if b.errs[i] != nil || r.Status != status {
			t.Errorf("%s: %+v %v, want %d", when, r, b.errs[i], status)
		}
		took = append(took, r.Took)
	}
	slices.Sort(took)
	p99 := took[len(took)*99/100]
	t.Logf("PostgreSQL hangs, %s: %d batches at once, all %d: median %s, p99 %s", when, len(took), status,
		took[len(took)/2], p99)
	if p99 > 2*time.Second {
		t.Errorf("%s: p99 %s", when, p99)
	}
}

// forgetClaims removes everything from Redis that recording signals has there, and leaves the keys.
func (x *deployment) forgetClaims(t *testing.T) {
	t.Helper()
	ctx := context.Background()
	redisClient := redis.NewClient(&redis.Options{Addr: x.Settings.RedisAddr})
	defer func() { _ = redisClient.Close() }()
	for _, pattern := range []string{"claim*", "attempt:*"} {
		names, err := redisClient.Keys(ctx, x.name+":"+pattern).Result()
		check(t, err)
		check(t, redisClient.Del(ctx, names...).Err())
	}
}
