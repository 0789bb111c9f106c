package deliver_test

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"storefront.internal/engine-relay/internal/deliver"
	"storefront.internal/shared/deliveries"
	"storefront.internal/shared/fault"
)

// TestOrderPerDecision: two relays with six workers and a healthy engine deliver each Decision's deliveries
// in order, each once.
func TestOrderPerDecision(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	a, _ := s.relayWith("t", nil)
	s.relayWith("t", nil)
	const connections, decisions, signals = 4, 10, 30
	for n := range signals {
		var batch []deliveries.Entry
		for c := range connections {
			for d := range decisions {
				batch = append(batch, entry(c, d, n))
			}
		}
		s.enqueue(batch...)
		a.Nudge()
	}
	s.drained()
	last := map[string]string{}
	for _, id := range s.stub.order {
		key := id[:strings.LastIndexByte(id, '_')]
		if id <= last[key] {
			t.Fatalf("%s after %s", id, last[key])
		}
		last[key] = id
	}
	if len(s.stub.order) != connections*decisions*signals || s.stub.copies != 0 {
		t.Errorf("%d arrived, %d again", len(s.stub.order), s.stub.copies)
	}
}

// TestMisbehaviour: whatever the engine does, in the end it has every delivery with one set of bytes, and
// none is dead-lettered.
func TestMisbehaviour(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	random := rand.New(rand.NewPCG(1, 2))
	choices := []behaviour{
		{}, {}, {}, {status: 202, effect: true},
		{status: 204, effect: true}, {status: 301}, {status: 403}, {status: 404}, {status: 405},
		{
			status: 429,
			retry:  "0",
		}, {status: 500}, {status: 500, effect: true}, {status: 503, retry: "0"}, {end: "hang"},
		{end: "reset"}, {end: "half"}, {end: "short"},
	}
	s.stub.set(func(n int, bodies []json.RawMessage) behaviour {
		if n > 150 {
			return behaviour{}
		}
		if len(bodies) > 20 && random.IntN(3) == 0 {
			return behaviour{status: 413}
		}
		return choices[random.IntN(len(choices))]
	})
	const total = 1500
	for n := range total / 50 {
		var batch []deliveries.Entry
		for i := range 50 {
			batch = append(batch, entry(i%3, i%7, n*50+i))
		}
		s.enqueue(batch...)
	}
	_, stopA := s.relayWith("t", nil)
	s.relayWith("t", nil)
	s.until("fifty requests", func() bool { n, _ := s.stub.count(); return n > 50 })
	stopA() // in the middle
	s.relayWith("t", nil)
	s.drained()
	if v := s.view(); v.Total.DeadLast24h != 0 || v.Total.UnconfirmedCreations != 0 {
		t.Errorf("in the end %+v", v.Total)
	}
	if len(s.stub.held) != total || len(s.stub.changed) != 0 || s.stub.copies == 0 {
		t.Errorf(
			"the engine holds %d of %d, %d copies, %d with other bytes",
			len(s.stub.held),
			total,
			s.stub.copies,
			len(s.stub.changed),
		)
	}
}

// TestPoison: one delivery that makes the engine fail does not hold up others, and one that it refuses is
// dead-lettered alone.
func TestPoison(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.stub.set(func(_ int, bodies []json.RawMessage) behaviour {
		for _, b := range bodies {
			switch {
			case strings.Contains(string(b), "sig_0_000007"):
				return behaviour{status: 500}
			case strings.Contains(string(b), "sig_0_000123"):
				return behaviour{status: 422}
			}
		}
		return behaviour{}
	})
	var batch []deliveries.Entry
	for n := range 400 {
		batch = append(batch, entry(0, 0, n))
	}
	s.enqueue(batch...)
	s.relayWith("t", nil)
	s.until("everything but two", func() bool { _, held := s.stub.count(); return held == 398 })
	s.until("the counts", func() bool { v := s.view().Total; return v.Pending == 1 && v.DeadLast24h == 1 })
	page, err := s.store.ListDead(context.Background(), deliveries.DeadQuery{})
	if err != nil || len(page.Dead) != 1 || page.Dead[0].ID != "sig_0_000123" ||
		page.Dead[0].Reason != "http_422" {
		t.Errorf("dead %+v, %v", page, err)
	}
	s.stub.set(nil)
	s.drained()
}

// TestUnconfirmedCreations: a delivery that was done and not answered is counted, until the engine answers
// `exists`.
func TestUnconfirmedCreations(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.stub.set(func(int, []json.RawMessage) behaviour { return behaviour{end: "hang"} })
	s.enqueue(entry(0, 0, 1), entry(0, 0, 2), entry(1, 0, 1))
	s.relayWith("t", nil)
	s.until(
		"three unconfirmed",
		func() bool { v := s.view().Total; return v.UnconfirmedCreations == 3 && v.Pending == 3 },
	)
	s.stub.set(nil)
	s.drained()
	if v := s.view(); v.Total.UnconfirmedCreations != 0 || len(s.stub.held) != 3 || s.stub.copies < 3 ||
		len(s.stub.changed) != 0 {
		t.Errorf("%+v, held %d, copies %d", v.Total, len(s.stub.held), s.stub.copies)
	}
}

// TestBlockedAndBack: a 401 stops two relays at once and costs no attempt; a resume or another credential
// ends it.
func TestBlockedAndBack(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := newStand(t)
	refuse := func(int, []json.RawMessage) behaviour { return behaviour{status: 401} }
	s.stub.set(refuse)
	for c := range 8 {
		s.enqueue(entry(c, 0, 1), entry(c, 1, 1))
	}
	_, stopA := s.relayWith("old", nil)
	_, stopB := s.relayWith("old", nil)
	s.until("blocked", func() bool { return s.view().Worker.State == deliveries.Blocked })
	since := s.view().Worker.BlockedAt
	if n, _ := s.stub.count(); n > 6 {
		t.Errorf("%d requests by six workers", n)
	}
	lanesRest := func() bool {
		var n int
		err := s.pool.QueryRow(ctx, `SELECT count(*) FROM delivery.lanes WHERE leased_by IS NOT NULL`).
			Scan(&n)
		return err == nil && n == 0
	}
	s.until("all lanes given back", lanesRest)

	s.stub.set(refuse) // counts anew
	if err := s.store.Resume(ctx); err != nil {
		t.Fatal(err)
	}
	// A lane that was being taken as the block came may have been given back after the look above, with a
	// refusal of its own. So the count alone does not show the probe; that no probe is allowed any more does,
	// which only its own refusal says.
	s.until("the probe", func() bool { n, _ := s.stub.count(); return n >= 1 })
	s.until("the probe's end", func() bool {
		var n int
		err := s.pool.QueryRow(ctx, `SELECT count(*) FROM delivery.blocks WHERE probe_at IS NULL`).Scan(&n)
		return err == nil && n == 1 && lanesRest()
	})
	if v := s.view(); v.Worker.State != deliveries.Blocked || !v.Worker.BlockedAt.Equal(since) ||
		v.Total.Pending != 16 {
		t.Errorf("after a refused probe %+v, blocked before at %v", v.Worker, since)
	}
	var attempts int
	if err := s.pool.QueryRow(ctx,
		`SELECT sum(attempts) FROM delivery.entries`).Scan(&attempts); err != nil ||
		attempts != 0 {
		t.Errorf("%d attempts lost, %v", attempts, err)
	}

	stopA()
	stopB()
	s.stub.set(nil)
	s.relayWith("new", nil)
	s.drained()
	if v := s.view(); v.Worker.State != deliveries.Running || s.stub.copies != 0 {
		t.Errorf("with the new credential %+v, %d copies", v.Worker, s.stub.copies)
	}
	if err := s.store.Resume(ctx); !fault.Is(err, fault.NotBlocked) {
		t.Errorf("resume while running: %v", err)
	}
}

func TestResumeDrains(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.stub.set(func(n int, _ []json.RawMessage) behaviour { return behaviour{status: 401} })
	s.enqueue(entry(0, 0, 1), entry(1, 0, 1))
	s.relayWith("t", nil)
	s.until("blocked", func() bool { return s.view().Worker.State == deliveries.Blocked })
	s.stub.set(nil)
	if err := s.store.Resume(context.Background()); err != nil {
		t.Fatal(err)
	}
	s.drained()
	s.until("running", func() bool { return s.view().Worker.State == deliveries.Running })
}

func TestEnvelopesAreDelivered(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	reg := prometheus.NewRegistry()
	s.relayWith("t", func(c *deliver.Config) { c.Registerer = reg })
	s.enqueue(
		deliveries.Entry{
			Kind:         deliveries.Envelope,
			ConnectionID: "con_1",
			LaneKey:      "p1",
			ID:           "obs_1",
			Body:         []byte(`{"signal_id":"obs_1"}`),
		},
	)
	s.until("the envelope", func() bool { _, held := s.stub.count(); return held == 1 })
	s.until("an empty queue", func() bool {
		v, err := s.store.ViewOf(context.Background(), deliveries.Envelope)
		return err == nil && v.Total.Pending == 0
	})
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, f := range families {
		names[f.GetName()] = true
	}
	for _, want := range []string{"delivery_total", "request_total", "pending", "oldest_pending_seconds",
		"unconfirmed_creations", "dead_last_24h", "worker_state", "view_up"} {
		if !names["storefront_engine_"+want] {
			t.Errorf("no metric storefront_engine_%s", want)
		}
	}
}
