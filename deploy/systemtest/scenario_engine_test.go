package systemtest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"syscall"
	"testing"
	"time"

	"storefront.internal/deploy/demoengine/engine"
	"storefront.internal/deploy/local/services"
)

// stop ends a node now.
func (x *topology) stop(n *node) {
	x.t.Helper()
	if err := n.Stop(syscall.SIGTERM, 30*time.Second); err != nil {
		x.t.Fatal(err)
	}
}

// The engine refuses the token: the worker is blocked, nothing is tried again, nothing is lost, signals are still accepted.
// A restart with the right token ends it, and so does E5 when the engine was mended.
func TestEngineRefusesToken(t *testing.T) {
	t.Parallel()
	x := newTopology(t)
	edge, relay := x.edge(), x.relay()
	s := x.newShop()
	d := s.recommend(edge)
	var ids []string
	send := func() {
		t.Helper()
		batch := cartBatch(d, 10)
		if a := s.must(edge, batch); a.count("accepted") != len(batch) {
			t.Fatalf("answer %+v", a)
		}
		ids = append(ids, idsOf(batch)...)
	}

	x.engine.SetToken("engine-secret-2")
	send()
	q, _ := x.waiting(t, s, "blocked", 10)
	if q.Worker.BlockedAt == nil || q.Worker.BlockedAt.IsZero() {
		t.Errorf("blocked without a time: %+v", q.Worker)
	}
	requests := x.engine.requests.Load()
	send()
	x.waiting(t, s, "blocked", 20)
	const inFlight = 4 // workers, whose requests may have been on their way as the block came
	if now := x.engine.requests.Load(); now-requests > inFlight {
		t.Errorf("%d requests reached the engine while blocked", now-requests)
	}
	x.stop(relay)
	x.settings.EngineSecret = "engine-secret-2"
	x.relay()
	x.delivered(t, s, ids, 40*time.Second)
	x.drained(t, s)
	var status *services.StatusError
	if err := x.api.Resume(context.Background()); !errors.As(err, &status) || status.Status != http.StatusConflict {
		t.Errorf("resume of what is not blocked: %v", err)
	}

	x.engine.SetToken("engine-secret-3")
	send()
	blocked, _ := x.waiting(t, s, "blocked", 10)
	requests = x.engine.requests.Load()
	if err := x.api.Resume(context.Background()); err != nil {
		t.Fatal(err)
	}
	eventually(t, 20*time.Second, "the probe", func() error {
		if x.engine.requests.Load() == requests {
			return errors.New("no request yet")
		}
		return nil
	})
	if again, _ := x.waiting(t, s, "blocked", 10); !again.Worker.BlockedAt.Equal(*blocked.Worker.BlockedAt) {
		t.Errorf("a refused probe moved blocked_at from %s to %s", blocked.Worker.BlockedAt, again.Worker.BlockedAt)
	}
	x.engine.SetToken("engine-secret-2")
	eventually(t, 20*time.Second, "resume", func() error { return x.api.Resume(context.Background()) })
	x.delivered(t, s, ids, 40*time.Second)
	x.drained(t, s)
}

// No engine is configured: signals are accepted and wait, and go once there is one.
func TestEngineAbsent(t *testing.T) {
	t.Parallel()
	x := newTopology(t)
	edge := x.edge()
	url := x.settings.EngineURL
	x.settings.EngineURL = ""
	relay := x.relay()
	s := x.newShop()
	batch := cartBatch(s.recommend(edge), 10)
	if a := s.must(edge, batch); a.count("accepted") != len(batch) {
		t.Fatalf("answer %+v", a)
	}
	x.waiting(t, s, "disabled", len(batch))
	x.stop(relay)
	x.settings.EngineURL = url
	x.relay()
	x.delivered(t, s, idsOf(batch), 40*time.Second)
	x.drained(t, s)
}

// The engine does the work and does not answer: the creations are unconfirmed until `exists` confirms them, with the same bytes.
func TestEngineHangsAfterEffect(t *testing.T) {
	t.Parallel()
	x := newTopology(t)
	edge := x.edge()
	x.relay("RELAY_ENGINE_TIMEOUT=500ms")
	s := x.newShop()
	d := s.recommend(edge)
	// Only to this shop: what other scenarios sent must not stop delivery before its batch comes.
	x.engine.Behave(engine.Behaviours{Interactions: engine.Behaviour{ConnectionID: s.connection, AfterEffect: true, HangMS: 30_000}})
	batch := cartBatch(d, 10)
	s.must(edge, batch)
	eventually(t, 30*time.Second, "unconfirmed creations", func() error {
		_, slice, err := x.queue(s)
		if err != nil {
			return err
		}
		if slice.UnconfirmedCreations != len(batch) || slice.Pending != len(batch) {
			return fmt.Errorf("%+v", slice)
		}
		return nil
	})
	x.engine.Behave(engine.Behaviours{})
	x.delivered(t, s, idsOf(batch), 40*time.Second)
	x.drained(t, s)
	if v := x.engineView(t, s.connection); v.exists < len(batch) {
		t.Errorf("%d answers said `exists`, want at least %d", v.exists, len(batch))
	}
}
