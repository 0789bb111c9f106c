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

	"storefront.internal/deploy/local/services"
)

// A revoked key is refused by every edge, whichever of the wires between control, the edges and the stores is cut, and pub/sub
// with it; once it is refused, it stays so. `make soak` holds the figures: 2 s at the 99th percentile, 15 s at the very worst.
func TestRevokedKeys(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		cut  func(w *wires)
		want int           // the answer of an edge that lets the key in no more
		p99  time.Duration // of make soak
	}{
		{"nothing is cut", func(*wires) {}, http.StatusUnauthorized, 2 * time.Second},
		{"control cannot tell Redis", func(w *wires) { w.control.cut() }, http.StatusUnauthorized, 2 * time.Second},
		{"the edges have no Redis", func(w *wires) { w.redis.cut() }, http.StatusUnauthorized, 2 * time.Second},
		{"the edges have no PostgreSQL", func(w *wires) { w.postgres.cut() }, http.StatusUnauthorized, 2 * time.Second},
		{"the edges have neither", func(w *wires) { w.redis.cut(); w.postgres.cut() }, http.StatusServiceUnavailable, 15 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			x, w := newWires(t)
			s := x.newShop()
			var took []time.Duration
			for range soak(1, 10) {
				keys := s.issue(x, w.edges, soak(3, 20))
				tc.cut(w)
				took = append(took, s.revokeAll(x, w.edges, keys, tc.want)...)
				w.mend()
				for _, edge := range w.edges {
					eventually(t, 30*time.Second, "a sound key is good", func() error { return s.asks(edge, s.key, http.StatusBadRequest) })
				}
			}
			p99, worst := percentile(took, 99), percentile(took, 100)
			t.Logf("%s: %d refusals, p99 %s, worst %s", tc.name, len(took), p99.Round(time.Millisecond), worst.Round(time.Millisecond))
			if soaking() {
				figure(t, "the 99th percentile of "+tc.name, p99 <= tc.p99+100*time.Millisecond) // and the asking takes time
				figure(t, "the worst case of "+tc.name, worst <= 15*time.Second+100*time.Millisecond)
			}
		})
	}
}

// wires are what a deployment's keys depend on.
type wires struct {
	control, redis, postgres *link // control to Redis, the edges to Redis, the edges to PostgreSQL
	edges                    []*node
}

func (w *wires) mend() {
	for _, k := range []*link{w.control, w.redis, w.postgres} {
		k.mend()
	}
}

func newWires(t *testing.T) (*topology, *wires) {
	t.Helper()
	w := &wires{control: newLink(t, shared.redis, 0), redis: newLink(t, shared.redis, 0)}
	x := newTopology(t, func(s *services.Settings) {
		s.RedisAddr = w.control.addr()
	})
	u, err := url.Parse(x.settings.Database)
	check(t, err)
	w.postgres = newLink(t, u.Host, 0)
	database := x.settings.Database
	x.settings.Database, x.settings.RedisAddr = strings.Replace(database, u.Host, w.postgres.addr(), 1), w.redis.addr()
	w.edges = []*node{x.edge(), x.edge()}
	x.settings.Database = database
	return x, w
}

// issue makes keys and waits until every edge has let each in.
func (s *shop) issue(x *topology, edges []*node, n int) []services.Key {
	s.t.Helper()
	var keys []services.Key
	for range n {
		key, err := x.api.IssueKey(s.t.Context(), s.connection)
		check(s.t, err)
		keys = append(keys, key)
		for _, edge := range edges {
			eventually(s.t, 30*time.Second, "a new key is good", func() error { return s.asks(edge, key.Secret, http.StatusBadRequest) })
		}
	}
	return keys
}

// revokeAll revokes the keys together and answers how long each edge let each of them in after control had said that it is
// revoked. The answer to a key that is refused must be the wanted one.
func (s *shop) revokeAll(x *topology, edges []*node, keys []services.Key, want int) []time.Duration {
	s.t.Helper()
	took := make([]time.Duration, len(keys)*len(edges))
	var all sync.WaitGroup
	var failed atomic.Pointer[string]
	for i, key := range keys {
		all.Go(func() {
			path := s.connection + "/api-keys/" + key.APIKeyID
			if err := services.Call(context.Background(), http.MethodDelete, x.api.BaseURL+"/internal/v1/connections/"+path, x.api.BackendToken, nil, nil); err != nil {
				failed.Store(new(err.Error()))
				return
			}
			revoked := time.Now()
			for j, edge := range edges {
				all.Go(func() {
					var err error
					if took[i*len(edges)+j], err = s.letIn(edge, key.Secret, want, revoked); err != nil {
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

// letIn is how long an edge let a revoked key in. A 503 proves nothing, as a busy machine may answer so; where it is what the
// edge has to answer in the end, it is watched for longer than keys may be good.
func (s *shop) letIn(edge *node, key string, want int, revoked time.Time) (last time.Duration, err error) {
	for refusals := 0; refusals < 10 || want == http.StatusServiceUnavailable && time.Since(revoked) < 16*time.Second; time.Sleep(10 * time.Millisecond) {
		switch {
		case s.asks(edge, key, want) == nil:
			refusals++
		case s.asks(edge, key, http.StatusBadRequest) != nil: // no answer, or another refusal
		case refusals > 0 && want == http.StatusUnauthorized:
			return 0, errors.New("a revoked key was let in again")
		default:
			last, refusals = time.Since(revoked), 0
		}
		if time.Since(revoked) > time.Minute {
			return 0, fmt.Errorf("after a minute there is no refusal of %d: %w", want, s.asks(edge, key, want))
		}
	}
	return last, nil
}

// asks sends a body that is refused with 400 when the key is good, and compares the status.
func (s *shop) asks(edge *node, key string, want int) error {
	with := shop{t: s.t, connection: s.connection, key: key}
	status, text, err := with.post(edge, "storefront-signals", []byte(`{}`), 20*time.Second)
	if err == nil && status != want {
		err = fmt.Errorf("answer %d, want %d: %s", status, want, text)
	}
	return err
}
