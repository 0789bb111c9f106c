package systemtest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"storefront.internal/deploy/stack"
	"storefront.internal/deploy/stack/client"
	"storefront.internal/deploy/stack/link"
)

// Every edge refuses a revoked key, whichever link between control, the edges and the stores is cut, and goes
// on refusing it. `make soak` checks the times: 2 s at the 99th percentile, 15 s at most.
func TestRevokedKeys(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		cut  func(w *wires)
		want int           // the answer of an edge that lets the key in no more
		p99  time.Duration // of make soak
	}{
		{"nothing is cut", func(*wires) {}, http.StatusUnauthorized, 2 * time.Second},
		{"control cannot tell Redis", func(w *wires) { w.control.Cut() }, http.StatusUnauthorized,
			2 * time.Second},
		{"the edges have no Redis", func(w *wires) { w.redis.Cut() }, http.StatusUnauthorized,
			2 * time.Second},
		{"the edges have no PostgreSQL", func(w *wires) { w.postgres.Cut() }, http.StatusUnauthorized,
			2 * time.Second},
		{"the edges have neither", func(w *wires) { w.redis.Cut(); w.postgres.Cut() },
			http.StatusServiceUnavailable, 15 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			x, w := newWires(t)
			s := x.newStorefront()
			var took []time.Duration
			for range soak(1, 10) {
				keys := s.issue(x, w.edges, soak(3, 20))
				tc.cut(w)
				took = append(took, s.revokeAll(x, w.edges, keys, tc.want)...)
				w.heal(t)
				for _, edge := range w.edges {
					eventually(t, 30*time.Second, "a sound key is good",
						func() error { return s.checkKey(edge, s.Key, http.StatusBadRequest) })
				}
			}
			p99, worst := percentile(took, 99), percentile(took, 100)
			t.Logf("%s: %d refusals, p99 %s, worst %s", tc.name, len(took), p99.Round(time.Millisecond),
				worst.Round(time.Millisecond))
			if soaking() {
				// and the asking takes time
				checkFigure(t, "the 99th percentile of "+tc.name, p99 <= tc.p99+100*time.Millisecond)
				checkFigure(t, "the worst case of "+tc.name, worst <= 15*time.Second+100*time.Millisecond)
			}
		})
	}
}

// wires are the links on which a deployment's keys depend.
type wires struct {
	control, redis, postgres *link.Link // control to Redis, the edges to Redis, the edges to PostgreSQL
	edges                    []*stack.Process
}

func (w *wires) heal(t *testing.T) {
	t.Helper()
	for _, l := range []*link.Link{w.control, w.redis, w.postgres} {
		check(t, l.Heal())
	}
}

func newWires(t *testing.T) (*deployment, *wires) {
	t.Helper()
	w := &wires{control: openLink(t, shared.redis), redis: openLink(t, shared.redis)}
	x := newDeployment(t, func(s *stack.Settings) { s.RedisAddr = w.control.Addr() })
	u, err := url.Parse(x.Settings.Database)
	check(t, err)
	w.postgres = openLink(t, u.Host)
	direct := x.Settings
	x.Settings.Database, x.Settings.RedisAddr = strings.Replace(direct.Database, u.Host, w.postgres.Addr(),
		1), w.redis.Addr()
	w.edges = []*stack.Process{x.edge(), x.edge()}
	x.Settings = direct
	return x, w
}

// issue makes keys and waits until every edge accepts each of them.
func (s *storefront) issue(x *deployment, edges []*stack.Process, n int) []client.Key {
	s.t.Helper()
	var keys []client.Key
	for range n {
		key, err := x.api.IssueKey(s.t.Context(), s.ConnectionID)
		check(s.t, err)
		keys = append(keys, key)
		for _, edge := range edges {
			eventually(s.t, 30*time.Second, "a new key is good",
				func() error { return s.checkKey(edge, key.Secret, http.StatusBadRequest) })
		}
	}
	return keys
}

// revokeAll revokes keys at the same time and returns how long each edge accepted each of them after control
// had answered. The status of the refusals must be the wanted one.
func (s *storefront) revokeAll(x *deployment, edges []*stack.Process, keys []client.Key,
	want int) []time.Duration {
	s.t.Helper()
	took := make([]time.Duration, len(keys)*len(edges))
	var all sync.WaitGroup
	var failed atomic.Pointer[string]
	for i, key := range keys {
		all.Go(func() {
			if err := x.api.RevokeKey(context.Background(), s.ConnectionID, key.APIKeyID); err != nil {
				failed.Store(new(err.Error()))
				return
			}
			revoked := time.Now()
			for j, edge := range edges {
				all.Go(func() {
					var err error
					if took[i*len(edges)+j],
						err = s.acceptedFor(edge, key.Secret, want, revoked); err != nil {
						failed.Store(new(err.Error()))
					}
				})
			}
		})
	}
	all.Wait()
	if text := failed.Load(); text != nil {
		s.t.Fatal(*text)
	}
	return took
}

// acceptedFor is how long an edge accepted a revoked key. A 503 proves nothing, since a busy machine may
// answer so; where it is the final answer, the edge is watched for longer than keys are cached.
func (s *storefront) acceptedFor(edge *stack.Process, key string, want int,
	revoked time.Time) (last time.Duration, err error) {
	for refusals := 0; refusals < 10 || want == http.StatusServiceUnavailable &&
		time.Since(revoked) < 16*time.Second; time.Sleep(10 * time.Millisecond) {
		switch {
		case s.checkKey(edge, key, want) == nil:
			refusals++
		case s.checkKey(edge, key, http.StatusBadRequest) != nil: // no answer, or another refusal
		case refusals > 0 && want == http.StatusUnauthorized:
			return 0, errors.New("a revoked key was let in again")
		default:
			last, refusals = time.Since(revoked), 0
		}
		if time.Since(revoked) > time.Minute {
			return 0, fmt.Errorf("after a minute there is no refusal of %d: %w", want,
				s.checkKey(edge, key, want))
		}
	}
	return last, nil
}

// checkKey sends a body that a valid key gets a 400 for, and compares the status.
func (s *storefront) checkKey(edge *stack.Process, key string, want int) error {
	return statusIs(client.Do(context.Background(), httpClient, client.Request{
		Method: http.MethodPost, URL: edge.URL + "/v1/connections/" + s.ConnectionID + "/storefront-signals",
		Token: key,
		Body:  []byte(`{}`), Timeout: 20 * time.Second,
	}), want)
}
