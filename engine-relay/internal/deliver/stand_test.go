package deliver_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"storefront.internal/engine-relay/internal/deliver"
	"storefront.internal/engine-relay/internal/engine"
	"storefront.internal/shared/backoff"
	"storefront.internal/shared/deliveries"
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
	client, err := engine.New(
		engine.Config{URL: s.stub.URL, Token: token, Timeout: 300 * time.Millisecond, Conns: 4},
	)
	if err != nil {
		s.t.Fatal(err)
	}
	s.relay++
	cfg := deliver.Config{
		Store: s.store, Engine: client,
		RelayID: fmt.Sprint("relay-", s.relay), Timeout: 300 * time.Millisecond, Workers: 3,
		Backoff:     backoff.Policy{Min: time.Millisecond, Max: 20 * time.Millisecond},
		LaneBackoff: backoff.Policy{Min: time.Millisecond, Max: 5 * time.Millisecond},
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
	err := pgx.BeginFunc(
		context.Background(),
		s.pool,
		func(tx pgx.Tx) error { return deliveries.Enqueue(context.Background(), tx, entries) },
	)
	if err != nil {
		s.t.Fatal(err)
	}
}

func entry(c, decision, n int) deliveries.Entry {
	conn, dec, sig := fmt.Sprint(
		"con_",
		c,
	), fmt.Sprintf(
		"dec_%d_%d",
		c,
		decision,
	), fmt.Sprintf(
		"sig_%d_%06d",
		decision,
		n,
	)
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
