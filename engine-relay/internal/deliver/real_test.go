package deliver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"storefront.internal/engine-relay/internal/deliver"
	"storefront.internal/engine-relay/internal/engine"
	"storefront.internal/shared/deliveries"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stand is a queue on real PostgreSQL with an engine beside it.
type stand struct {
	t     testing.TB
	pool  *pgxpool.Pool
	store *deliveries.Store
	stub  *stub
	relay int
}

func newStand(t testing.TB) *stand {
	t.Helper()
	pool := testkit.Pool(t, testkit.PostgresAs(t, testkit.Postgres(t), "storefront_relay"))
	return &stand{t: t, pool: pool, store: deliveries.NewStore(pool), stub: newStub(t)}
}

// relayWith starts a relay process's worker; stop it by the function, or by the test's end.
func (s *stand) relayWith(token string, change func(*deliver.Config)) (w *deliver.Worker, stop func()) {
	s.t.Helper()
	client, err := engine.New(engine.Config{URL: s.stub.URL, Token: token, Timeout: 300 * time.Millisecond, Conns: 4})
	if err != nil {
		s.t.Fatal(err)
	}
	s.relay++
	cfg := deliver.Config{
		Store: s.store, Engine: client, RelayID: fmt.Sprint("relay-", s.relay), Timeout: 300 * time.Millisecond, Workers: 3,
		Backoff:     deliver.Backoff{Min: time.Millisecond, Max: 20 * time.Millisecond},
		LaneBackoff: deliver.Backoff{Min: time.Millisecond, Max: 5 * time.Millisecond},
		Poll:        20 * time.Millisecond, Compact: 10 * time.Millisecond, StopGrace: time.Millisecond,
	}
	if change != nil {
		change(&cfg)
	}
	w = deliver.New(cfg)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = w.Run(ctx) }()
	stop = sync.OnceFunc(func() { cancel(); <-done; client.Close() })
	s.t.Cleanup(stop)
	return w, stop
}

func (s *stand) enqueue(entries ...deliveries.Entry) {
	s.t.Helper()
	err := pgx.BeginFunc(context.Background(), s.pool, func(tx pgx.Tx) error { return deliveries.Enqueue(context.Background(), tx, entries) })
	if err != nil {
		s.t.Fatal(err)
	}
}

func entry(c, decision, n int) deliveries.Entry {
	conn, dec, sig := fmt.Sprint("con_", c), fmt.Sprintf("dec_%d_%d", c, decision), fmt.Sprintf("sig_%d_%06d", decision, n)
	return deliveries.Entry{
		Kind: deliveries.Interaction, ConnectionID: ident.ConnectionID(conn), LaneKey: dec, ID: sig,
		Body: fmt.Appendf(nil, `{"signal_id":%q, "connection_id":%q,"decision_id":%q}`, sig, conn, dec),
	}
}

func (s *stand) view() deliveries.View {
	s.t.Helper()
	v, err := s.store.View(context.Background())
	if err != nil {
		s.t.Fatal(err)
	}
	return v
}

// until waits for a condition of the outside world, which no channel tells of.
func (s *stand) until(what string, ok func() bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			s.t.Fatalf("%s never came; the view is %+v", what, s.view())
		case <-tick.C:
		}
	}
}

func (s *stand) drained() {
	s.t.Helper()
	s.until("an empty queue", func() bool { return s.view().Total.Pending == 0 })
}

// TestOrderPerDecision: two relays, six workers, a sound engine: each Decision's deliveries arrive in their order, each once.
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

// TestMisbehaviour: whatever the engine does, in the end it has everything, each with one set of bytes, and nothing died.
func TestMisbehaviour(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	random := rand.New(rand.NewPCG(1, 2))
	choices := []behaviour{
		{}, {}, {}, {status: 202, effect: true}, {status: 204, effect: true}, {status: 301}, {status: 403}, {status: 404}, {status: 405},
		{status: 429, retry: "0"}, {status: 500}, {status: 500, effect: true}, {status: 503, retry: "0"}, {end: "hang"}, {end: "reset"}, {end: "half"}, {end: "short"},
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
		t.Errorf("the engine holds %d of %d, %d copies, %d with other bytes", len(s.stub.held), total, s.stub.copies, len(s.stub.changed))
	}
}

// TestPoison: one delivery that the engine chokes on holds nobody back, and one that it refuses dies alone.
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
	page, err := s.store.Dead(context.Background(), deliveries.DeadQuery{})
	if err != nil || len(page.Dead) != 1 || page.Dead[0].SignalID != "sig_0_000123" || page.Dead[0].Reason != "http_422" {
		t.Errorf("dead %+v, %v", page, err)
	}
	s.stub.set(nil)
	s.drained()
}

// TestUnconfirmedCreations: done and not answered is counted, and confirmed by `exists`.
func TestUnconfirmedCreations(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.stub.set(func(int, []json.RawMessage) behaviour { return behaviour{end: "hang"} })
	s.enqueue(entry(0, 0, 1), entry(0, 0, 2), entry(1, 0, 1))
	s.relayWith("t", nil)
	s.until("three unconfirmed", func() bool { v := s.view().Total; return v.UnconfirmedCreations == 3 && v.Pending == 3 })
	s.stub.set(nil)
	s.drained()
	if v := s.view(); v.Total.UnconfirmedCreations != 0 || len(s.stub.held) != 3 || s.stub.copies < 3 || len(s.stub.changed) != 0 {
		t.Errorf("%+v, held %d, copies %d", v.Total, len(s.stub.held), s.stub.copies)
	}
}

// TestBlockedAndBack: 401 stops two relays at once, costs nothing, and ends by a resume or by another credential.
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
		err := s.pool.QueryRow(ctx, `SELECT count(*) FROM delivery.lanes WHERE leased_by IS NOT NULL`).Scan(&n)
		return err == nil && n == 0
	}
	s.until("all lanes given back", lanesRest)

	s.stub.set(refuse) // counts anew
	if err := s.store.Resume(ctx); err != nil {
		t.Fatal(err)
	}
	s.until("the probe", func() bool { n, _ := s.stub.count(); return n == 1 })
	s.until("the probe's end", func() bool {
		var n int
		err := s.pool.QueryRow(ctx, `SELECT count(*) FROM delivery.blocks WHERE probe_at IS NULL`).Scan(&n)
		return err == nil && n == 1 && lanesRest()
	})
	if v := s.view(); v.Worker.State != deliveries.Blocked || !v.Worker.BlockedAt.Equal(since) || v.Total.Pending != 16 {
		t.Errorf("after a refused probe %+v, blocked before at %v", v.Worker, since)
	}
	var attempts int
	if err := s.pool.QueryRow(ctx, `SELECT sum(attempts) FROM delivery.entries`).Scan(&attempts); err != nil || attempts != 0 {
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
	s.enqueue(deliveries.Entry{Kind: deliveries.Envelope, ConnectionID: "con_1", LaneKey: "p1", ID: "obs_1", Body: []byte(`{"signal_id":"obs_1"}`)})
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
	for _, want := range []string{"delivery_total", "request_total", "pending", "oldest_pending_seconds", "unconfirmed_creations", "dead_last_24h", "worker_state", "view_up"} {
		if !names["storefront_engine_"+want] {
			t.Errorf("no metric storefront_engine_%s", want)
		}
	}
}
