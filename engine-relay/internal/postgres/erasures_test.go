package postgres_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/prometheus/client_golang/prometheus"

	"storefront.internal/engine-relay/internal/erase"
	"storefront.internal/engine-relay/internal/postgres"
	"storefront.internal/engine-relay/internal/sink"
	"storefront.internal/shared/deliveries"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/signal"
	"storefront.internal/shared/testkit"
)

// shopper is a request of a visitor: each signal has the visitor and a client.
func shopper(visitor string, received time.Time, signals ...signal.Signal) *signal.Record {
	r := request(signals...)
	r.RecordID, r.ReceivedAt = uuid.Must(uuid.NewV7()).String(), received
	r.Audit.Referer = "https://shop.test/" + visitor
	for i := range r.Signals {
		s := &r.Signals[i].Signal
		s.Visitor = &signal.Visitor{
			VisitorID: ident.VisitorID("vis_" + visitor),
			SessionID: ident.SessionID("ses_" + visitor),
		}
		s.Client = json.RawMessage(`{"page_url":"https://shop.test/?of=` + visitor + `"}`)
	}
	return r
}

func seen(visitor string, at time.Time) sink.Message {
	d := &signal.Decision{
		DecisionID:   ident.DecisionID("dec_" + visitor),
		ConnectionID: "con_a",
		StoreID:      "str_a",
		Placement:    "home",
		Source:       "engine",
		ServedAt:     at,
		Visitor: &signal.Visitor{
			VisitorID: ident.VisitorID("vis_" + visitor),
			SessionID: ident.SessionID("ses_" + visitor),
		},
	}
	return message(decisionsTopic, signal.AppendDecision(nil, d))
}

// ask writes a request down as control does, and returns its instant.
func (b *bundle) ask(t testing.TB, s signal.Subject, id string) time.Time {
	t.Helper()
	digest := pgtype.UUID{Bytes: signal.ErasureDigest("con_a", s, id), Valid: true}
	return one[time.Time](
		t,
		b,
		`INSERT INTO relay.erasures (connection_id, subject, digest, subject_id) VALUES ('con_a', $1, $2, $3)
		ON CONFLICT (connection_id, subject, digest) DO UPDATE SET subject_id = excluded.subject_id, erased_at = excluded.erased_at, completed_at = NULL
		RETURNING erased_at`,
		s,
		digest,
		id,
	)
}

// eraser is that of a relay with that name; between is called before each of its transactions.
func (b *bundle) eraser(name string, between func()) *erase.Eraser {
	return erase.New(
		erase.Config{
			Store:   telling{postgres.NewErasures(b.relay), between},
			Queue:   deliveries.NewStore(b.relay),
			RelayID: name,
			Logger:  discard(),
			Metrics: erase.NewMetrics(prometheus.NewRegistry()),
		},
	)
}

type telling struct {
	*postgres.Erasures
	between func()
}

func (s telling) Renew(ctx context.Context, w *erase.Claim, life time.Duration) (bool, error) {
	s.between()
	return s.Erasures.Renew(ctx, w, life)
}

// erase lets a relay work until nothing is pending.
func (b *bundle) erase(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.eraser("relay", func() {}).Run(ctx) }()
	b.until(
		t,
		"nothing is pending",
		`SELECT NOT EXISTS (SELECT FROM relay.erasures WHERE completed_at IS NULL)`,
	)
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

func (b *bundle) until(t testing.TB, what, query string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !one[bool](t, b, query); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

func (b *bundle) holding(t testing.TB, text string, want ...string) {
	t.Helper()
	if got := testkit.TablesContaining(t, b.owner, text); !slices.Equal(got, want) {
		t.Errorf("%s is in %v, want %v", text, got, want)
	}
}

// TestAVisitorIsErased: no row keeps data of the visitor, in nine kinds of rows, and no other data is
// touched.
func TestAVisitorIsErased(t *testing.T) {
	t.Parallel()
	b := setup(t)
	early := time.Now().Add(-time.Minute)
	for _, visitor := range []string{"anna", "bert"} {
		r := shopper(
			visitor,
			early,
			act(visitor+"1", signal.Click, -1),
			act(visitor+"2", signal.AddToCart, 2),
			act(visitor+"3", signal.Dismiss, -1),
		)
		r.Signals[2].Type = "unheard_of" // parked
		b.record(
			t,
			seen(visitor, early),
			signalsOf(r),
			message(signalsTopic, []byte("con_a vis_"+visitor+" garbage")),
		)
	}
	other := shopper("anna", early, act("other", signal.Click, -1))
	other.ConnectionID = "con_b"
	b.record(t, signalsOf(other))
	b.exec(
		t,
		`INSERT INTO delivery.dead (connection_id, kind, id, lane, body, created_at, died_at, attempts, reason)
		SELECT connection_id, kind, 'sig_dead', lane, body, created_at, now(), 1, 'x' FROM delivery.entries WHERE id = 'sig_anna1'`,
	)

	b.ask(t, signal.VisitorSubject, "vis_anna")
	b.ask(t, signal.VisitorSubject, "vis_nobody")
	b.erase(t)

	expect(
		t,
		"of another connection",
		b.count(t, `relay.signals WHERE visitor_id = 'vis_anna' AND connection_id = 'con_b'`),
		1,
	)
	b.exec(t, `DELETE FROM relay.signals WHERE connection_id = 'con_b'`)
	b.exec(t, `DELETE FROM relay.audit WHERE connection_id = 'con_b'`)
	b.exec(t, `DELETE FROM delivery.entries WHERE connection_id = 'con_b'`)
	for _, gone := range []string{"vis_anna", "ses_anna", "of=anna", "shop.test/anna", "vis_nobody"} {
		b.holding(t, gone)
	}
	expect(t, "signals", b.count(t, "relay.signals"), 4)
	expect(t, "cart lines", b.line(t, "itm_1"), "4 rev 2")
	expect(t, "audits", b.count(t, "relay.audit"), 2)
	expect(
		t,
		"blank audits",
		b.count(t, `relay.audit WHERE ip = '' AND user_agent = '' AND clients IS NULL`),
		1,
	)
	expect(t, "deliveries", b.count(t, "delivery.entries"), 4)
	expect(t, "decisions", b.count(t, "relay.decisions"), 2)
	expect(t, "parked", b.count(t, "relay.parked"), 4)
	expect(
		t,
		"requests that are done",
		b.count(t, `relay.erasures WHERE completed_at IS NOT NULL AND subject_id IS NULL`),
		2,
	)
	for _, stays := range []string{"vis_bert", "ses_bert"} {
		if got := testkit.TablesContaining(t, b.owner, stays); len(got) < 4 {
			t.Errorf("%s is in %v only", stays, got)
		}
	}
}

// TestRecordsThatComeAfterAnErasureAreRedacted: records come out of Kafka after the erasure; what was
// received before it is stripped, what the visitor did later is stored.
func TestRecordsThatComeAfterAnErasureAreRedacted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	at := b.ask(t, signal.VisitorSubject, "vis_anna")
	b.erase(t)
	broken := shopper("anna", at.Add(-time.Second), act("broken", signal.Click, -1))
	broken.Signals[0].Type = "unheard_of"
	b.record(t, seen("anna", at.Add(-time.Second)), signalsOf(broken),
		signalsOf(shopper("anna", at.Add(-time.Second), click("old"), act("old2", signal.AddToCart, 1))))
	b.holding(t, "vis_anna")
	b.holding(t, "shop.test/anna")
	expect(t, "signals", b.count(t, "relay.signals"), 2)
	expect(t, "parked", b.count(t, "relay.parked"), 1)

	b.record(t, signalsOf(shopper("anna", at.Add(time.Second), click("new"))))
	expect(
		t,
		"new signals",
		b.count(t, `relay.signals WHERE visitor_id = 'vis_anna' AND session_id = 'ses_anna'`),
		1,
	)
	expect(t, "new audits", b.count(t, `relay.audit WHERE ip <> ''`), 1)

	b.ask(
		t,
		signal.VisitorSubject,
		"vis_anna",
	) // again: what is stored by now goes too, whatever the edge's clock said
	b.erase(t)
	b.holding(t, "vis_anna")
	expect(t, "requests", b.count(t, "relay.erasures"), 1)
}

// TestAnErasureWaitsForSinksThatHaveNotSeenIt: the sink read the erasures before this one was requested, and
// commits later.
func TestAnErasureWaitsForSinksThatHaveNotSeenIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	read, goOn := make(chan struct{}), make(chan struct{})
	slow := writer(stalling{b.store, read, goOn})
	stored := make(chan error, 1)
	go func() {
		batch := &sink.Batch{}
		err := batch.AddSignals(signalsOf(shopper("anna", time.Now().Add(-time.Second), click("slow"))))
		if err == nil {
			err = slow.Write(context.Background(), batch)
		}
		stored <- err
	}()
	<-read
	b.ask(t, signal.VisitorSubject, "vis_anna")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.eraser("relay", func() {}).Run(ctx) }()
	b.until(
		t,
		"the eraser waits",
		`SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))`,
	)
	close(goOn)
	if err := <-stored; err != nil {
		t.Fatal(err)
	}
	b.until(t, "completed", `SELECT completed_at IS NOT NULL FROM relay.erasures`)
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	b.holding(t, "vis_anna")
	expect(t, "signals", b.count(t, "relay.signals"), 1)
}

// stalling stops between the reading of erasures and everything else.
type stalling struct {
	sink.Store
	read, goOn chan struct{}
}

func (s stalling) InTx(ctx context.Context, fn func(sink.Tx) error) error {
	return s.Store.InTx(ctx, func(tx sink.Tx) error { return fn(stallingTx{tx, s}) })
}

type stallingTx struct {
	sink.Tx
	s stalling
}

func (t stallingTx) Erasures(ctx context.Context, since time.Time) (sink.Erasures, error) {
	e, err := t.Tx.Erasures(ctx, since)
	close(t.s.read)
	<-t.s.goOn
	return e, err
}

// TestTheBuyerOfAnOrderIsErased: with all data of the visitor, whether the purchase is stored yet or not.
func TestTheBuyerOfAnOrderIsErased(t *testing.T) {
	t.Parallel()
	b := setup(t)
	purchase := func(id, order string) signal.Signal {
		s := act(id, signal.Purchase, 1)
		s.OrderExternalID = order
		return s
	}
	early := time.Now().Add(-time.Minute)
	b.record(
		t,
		seen("anna", early),
		signalsOf(shopper("anna", early, click("a1"))),
		signalsOf(shopper("anna", early, purchase("a2", "77"), purchase("a3", "77"))),
		signalsOf(
			shopper("bert", early, click("b1")),
		),
		signalsOf(shopper("carl", early, purchase("c1", "78"))),
	)
	b.ask(t, signal.OrderSubject, "77")
	b.erase(t)
	b.holding(t, "vis_anna")
	b.holding(t, "shop.test/anna")
	expect(t, "of others", b.count(t, `relay.signals WHERE visitor_id IN ('vis_bert', 'vis_carl')`), 2)

	b.record(t, signalsOf(shopper("bert", early, purchase("b2", "77")))) // bought it too, and comes late
	expect(
		t,
		"their purchase",
		b.count(t, `relay.signals WHERE signal_id = 'sig_b2' AND visitor_id IS NULL`),
		1,
	)
	b.erase(t)
	b.holding(t, "vis_bert")
	b.holding(t, "shop.test/bert")
	expect(t, "of others", b.count(t, `relay.signals WHERE visitor_id = 'vis_carl'`), 1)
}

// A stranger names the order in signals of other visitors; those keep their data but for the purchase.
func TestAnOrderErasesAFewVisitorsOnly(t *testing.T) {
	t.Parallel()
	b := setup(t)
	early := time.Now().Add(-time.Hour)
	for i := range 20 {
		name, at := fmt.Sprintf("v%02d", i), early.Add(time.Duration(i)*time.Minute)
		bought := act("p"+name, signal.Purchase, 1)
		bought.OrderExternalID = "77"
		b.record(t, seen(name, at), signalsOf(shopper(name, at, click("c"+name))),
			signalsOf(shopper(name, at, bought)))
	}
	b.ask(t, signal.OrderSubject, "77")
	b.erase(t)
	expect(t, "purchases with a visitor", b.count(t,
		`relay.signals WHERE order_external_id = '77' AND visitor_id IS NOT NULL`), 0)
	expect(t, "clicks with a visitor", b.count(t,
		`relay.signals WHERE order_external_id IS NULL AND visitor_id IS NOT NULL`), 17)
	expect(t, "of the first three", b.count(t,
		`relay.signals WHERE visitor_id IN ('vis_v00', 'vis_v01', 'vis_v02')`), 0)
}

func TestAWholeConnectionIsErased(t *testing.T) {
	t.Parallel()
	b := setup(t)
	early := time.Now().Add(-time.Minute)
	for i := range 30 {
		b.record(
			t,
			seen(fmt.Sprint("v", i), early),
			signalsOf(shopper(fmt.Sprint("v", i), early, click(fmt.Sprint(i)))),
		)
	}
	session := shopper("x", early, click("session"))
	session.Signals[0].Visitor.VisitorID = ""
	b.record(t, signalsOf(session), signalsOf(request(click("anonymous"))))
	other := shopper("y", early, click("y"))
	other.ConnectionID = "con_b"
	b.record(t, signalsOf(other))
	b.ask(t, signal.ConnectionSubject, "")
	b.erase(t)
	b.holding(t, "vis_v")
	b.holding(t, "ses_x")
	expect(
		t,
		"audits",
		b.count(
			t,
			`relay.audit WHERE (ip <> '' OR referer <> '' OR clients IS NOT NULL) AND connection_id = 'con_a'`,
		),
		0,
	)
	expect(
		t,
		"of another connection",
		b.count(t, `relay.audit WHERE ip <> '' AND connection_id = 'con_b'`),
		1,
	)
	expect(t, "signals", b.count(t, `relay.signals`), 33)
}

// TestAnotherRelayCompletesAnErasure: whichever chunk a relay ends after, another relay completes the work.
func TestAnotherRelayCompletesAnErasure(t *testing.T) {
	t.Parallel()
	b := setup(t)
	early := time.Now().Add(-time.Minute)
	for chunks := 0; b.breaksOff(t, fmt.Sprint("v", chunks), early, chunks); chunks++ {
		b.erase(t)
		b.holding(t, fmt.Sprint("vis_v", chunks))
		b.holding(t, fmt.Sprint("ses_v", chunks))
	}
}

// breaksOff erases a visitor with a relay that ends behind so many chunks, and reports whether it did before
// it was done.
func (b *bundle) breaksOff(t *testing.T, visitor string, early time.Time, chunks int) bool {
	t.Helper()
	b.record(t, seen(visitor, early), signalsOf(shopper(visitor, early, click(visitor))))
	b.ask(t, signal.VisitorSubject, "vis_"+visitor)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	e := b.eraser("breaks off", func() {
		if chunks--; chunks < 0 {
			cancel()
		}
	})
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	for {
		select {
		case err := <-ended:
			return err == nil
		case <-time.After(20 * time.Millisecond):
		}
		if b.count(t, "relay.erasures WHERE completed_at IS NULL") == 0 {
			cancel()
			return <-ended != nil
		}
	}
}
