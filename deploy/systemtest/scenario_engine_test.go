package systemtest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"storefront.internal/deploy/demoengine/engine"
	"storefront.internal/deploy/stack/client"
)

// The engine refuses the token: the worker is blocked, nothing is retried or lost, and signals are still
// accepted. A restart with the right token ends it, and so does resume_delivery once the engine accepts the
// token.
func TestEngineRefusesToken(t *testing.T) {
	t.Parallel()
	x := newDeployment(t)
	edge, relay := x.edge(), x.relay()
	s := x.newStorefront()
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
	q, _ := x.awaitQueue(t, s, "blocked", 10)
	if q.Worker.BlockedAt == nil || q.Worker.BlockedAt.IsZero() {
		t.Errorf("blocked without a time: %+v", q.Worker)
	}
	requests := x.engine.requests.Load()
	send()
	x.awaitQueue(t, s, "blocked", 20)
	const inFlight = 4 // workers, whose requests may have been on their way as the block came
	if now := x.engine.requests.Load(); now-requests > inFlight {
		t.Errorf("%d requests reached the engine while blocked", now-requests)
	}
	x.stop(relay)
	x.Settings.EngineSecret = "engine-secret-2"
	x.relay()
	x.awaitDelivered(t, s, ids, 40*time.Second)
	x.awaitDrained(t, s)
	var status *client.StatusError
	if err := x.api.ResumeDelivery(context.Background()); !errors.As(err, &status) ||
		status.Status != http.StatusConflict {
		t.Errorf("resume of what is not blocked: %v", err)
	}

	x.engine.SetToken("engine-secret-3")
	send()
	blocked, _ := x.awaitQueue(t, s, "blocked", 10)
	requests = x.engine.requests.Load()
	if err := x.api.ResumeDelivery(context.Background()); err != nil {
		t.Fatal(err)
	}
	eventually(t, 20*time.Second, "the probe", func() error {
		if x.engine.requests.Load() == requests {
			return errors.New("no request yet")
		}
		return nil
	})
	if again, _ := x.awaitQueue(t, s, "blocked",
		10); !again.Worker.BlockedAt.Equal(*blocked.Worker.BlockedAt) {
		t.Errorf("a refused probe moved blocked_at from %s to %s", blocked.Worker.BlockedAt,
			again.Worker.BlockedAt)
	}
	x.engine.SetToken("engine-secret-2")
	// The answer to the refused probe may come after a resume and block again: it is resumed until it runs.
	eventually(t, 20*time.Second, "resume", func() error {
		q, _, err := x.queue(s)
		if err != nil || q.Worker.State == "running" {
			return err
		}
		return errors.Join(errors.New("blocked"), x.api.ResumeDelivery(context.Background()))
	})
	x.awaitDelivered(t, s, ids, 40*time.Second)
	x.awaitDrained(t, s)
}

// No engine is configured: signals are accepted and wait, and are delivered once there is one.
func TestEngineAbsent(t *testing.T) {
	t.Parallel()
	x := newDeployment(t)
	edge := x.edge()
	url := x.Settings.EngineURL
	x.Settings.EngineURL = ""
	relay := x.relay()
	s := x.newStorefront()
	batch := cartBatch(s.recommend(edge), 10)
	if a := s.must(edge, batch); a.count("accepted") != len(batch) {
		t.Fatalf("answer %+v", a)
	}
	x.awaitQueue(t, s, "disabled", len(batch))
	x.stop(relay)
	x.Settings.EngineURL = url
	x.relay()
	x.awaitDelivered(t, s, idsOf(batch), 40*time.Second)
	x.awaitDrained(t, s)
}

// The engine stores the interactions and does not answer: the creations are unconfirmed until `exists`
// confirms them with the same bytes.
func TestEngineHangsAfterEffect(t *testing.T) {
	t.Parallel()
	x := newDeployment(t)
	edge := x.edge()
	x.relay("RELAY_ENGINE_TIMEOUT=500ms")
	s := x.newStorefront()
	d := s.recommend(edge)
	// Only for this connection: deliveries of other scenarios must not stop the relay before this batch
	// comes.
	x.engine.Behave(engine.Behaviours{Interactions: engine.Behaviour{ConnectionID: s.ConnectionID,
		AfterEffect: true, HangMS: 30_000}})
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
	x.awaitDelivered(t, s, idsOf(batch), 40*time.Second)
	x.awaitDrained(t, s)
	if v := x.engineView(t, s.ConnectionID); v.exists < len(batch) {
		t.Errorf("%d answers said `exists`, want at least %d", v.exists, len(batch))
	}
}
