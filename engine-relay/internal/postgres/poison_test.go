package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"storefront.internal/engine-relay/internal/postgres"
	"storefront.internal/engine-relay/internal/sink"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/pg"
	"storefront.internal/shared/signal"
)

// nul is a signal that PostgreSQL refuses: text cannot hold the character.
func nul(id string) signal.Signal {
	s := act(id, signal.Purchase, -1)
	s.OrderExternalID = "a\x00b"
	return s
}

func TestOnePoisonSignalIsParkedAndItsNeighboursStored(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var messages []sink.Message
	for i, id := range ids("n", 40) {
		messages = append(
			messages,
			batchOf(act(id+"a", signal.AddToCart, 1), act(id+"b", signal.AddToCart, 1)),
		)
		if i == 17 {
			messages = append(
				messages,
				batchOf(act("x1", signal.AddToCart, 1), nul("bad"), act("x2", signal.AddToCart, 1)),
			)
		}
	}
	bad := messages[18]
	b.record(t, messages...)
	b.record(t, messages...) // read again: parked once, stored once

	expect(t, "signals", b.count(t, "relay.signals"), 82)
	expect(t, "audits", b.count(t, "relay.audit"), 41)
	expect(t, "line", b.line(t, "itm_1"), "82 rev 82")
	expect(
		t,
		"parked",
		one[string](
			t,
			b,
			`SELECT format('%s %s %s %s %s %s %s %s', topic, topic_partition, record_offset, signal_index, connection_id,
		signal_id, reason, sqlstate) FROM relay.parked`,
		),
		fmt.Sprintf("signals 3 %d 1 con_a sig_bad refused 22021", bad.Offset),
	)

	alone, err := signal.DecodeRecord(one[[]byte](t, b, `SELECT bytes FROM relay.parked`))
	if err != nil || len(alone.Signals) != 1 || alone.Signals[0].Index != 1 ||
		alone.Signals[0].OrderExternalID != "a\x00b" ||
		alone.Audit.IP == "" {
		t.Errorf("parked record: %+v, %v", alone, err)
	}
}

func TestOnlyPoison(t *testing.T) {
	t.Parallel()
	b := setup(t)
	broken := decision("dec_bad", "", "itm_1")
	d, err := signal.DecodeDecision(broken.Value)
	if err != nil {
		t.Fatal(err)
	}
	d.Placement = "\x00"
	b.record(
		t,
		message(decisionsTopic, signal.AppendDecision(nil, d)),
		decision("dec_good", ""),
		batchOf(nul("a"), nul("b")),
	)
	expect(t, "parked", b.count(t, "relay.parked WHERE sqlstate = '22021'"), 3)
	expect(t, "decisions", b.count(t, "relay.decisions"), 1)
	expect(t, "ledger", b.count(t, "relay.ledger_digests"), 0)
	expect(t, "audits", b.count(t, "relay.audit"), 0)
}

func TestBytesThatAreNotARecordAreParked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	strange := click("a")
	strange.ItemID = ident.ItemID("no id")
	noUUID := request(click("b"))
	noUUID.RecordID = "7"
	b.record(
		t,
		message(signalsTopic, []byte{0xff, 0}),
		message(decisionsTopic, []byte("{}")),
		message(signalsTopic, nil),
		signalsOf(noUUID),
		batchOf(strange, click("c")),
	)
	expect(t, "undecodable", b.count(t, "relay.parked WHERE reason = 'undecodable' AND signal_index = -1"), 3)
	expect(t, "malformed", b.count(t, "relay.parked WHERE reason = 'malformed'"), 2)
	expect(
		t,
		"bytes",
		one[string](t, b, `SELECT encode(bytes, 'hex') FROM relay.parked ORDER BY record_offset LIMIT 1`),
		"ff00",
	)
	expect(t, "signals", b.count(t, "relay.signals"), 1)
}

// refuse makes the database raise the SQLSTATE for signal ids like the pattern, the first times only (0:
// always).
func (b *bundle) refuse(t *testing.T, pattern, state string, times int) {
	t.Helper()
	b.exec(t, `CREATE SEQUENCE relay.refusals`)
	b.exec(t, `GRANT USAGE ON SEQUENCE relay.refusals TO storefront_relay`)
	b.exec(t, fmt.Sprintf(`CREATE FUNCTION relay.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF NEW.signal_id LIKE '%s' AND (nextval('relay.refusals') <= %d OR %d = 0) THEN RAISE EXCEPTION 'refused by the test' USING ERRCODE = '%s'; END IF;
		RETURN NEW; END $$`, pattern, times, times, state))
	b.exec(
		t,
		`CREATE TRIGGER refuse BEFORE INSERT ON relay.signals FOR EACH ROW EXECUTE FUNCTION relay.refuse()`,
	)
}

func TestTroubleOfTheStoreParksNothing(t *testing.T) {
	t.Parallel()
	for name, state := range map[string]string{"disk full": "53100", "too many connections": "53300",
		"shutdown": "57P01", "deadlock": "40P01",
		"lost connection": "08006", "missing table": "42P01", "missing right": "42501",
		"unforeseen": "XX000"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.refuse(t, `%`, state, 5)
			b.record(t, batchOf(click("a"), click("b")))
			expect(t, "parked", b.count(t, "relay.parked"), 0)
			expect(t, "signals", b.count(t, "relay.signals"), 2)
			if err := b.writer.Ready(t.Context()); err != nil {
				t.Errorf("after it passed: %v", err)
			}
		})
	}
}

func TestASchemaThatDoesNotFitShowsInReadiness(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, `ALTER TABLE relay.signals RENAME COLUMN crawler TO other`)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var seen atomic.Bool
	stuck := sink.Config{Store: b.store, Logger: discard(), Metrics: metrics()}
	var r *sink.Writer
	stuck.Pause = func(ctx context.Context, attempt int) error {
		seen.Store(r.Ready(ctx) != nil)
		if attempt == 3 {
			cancel()
		}
		return ctx.Err()
	}
	r = sink.New(stuck)
	if err := r.Write(ctx, gather(t, batchOf(click("a")))); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if !seen.Load() {
		t.Error("readiness did not tell")
	}
	expect(t, "parked", b.count(t, "relay.parked"), 0)
	expect(t, "ledger", b.count(t, "relay.ledger_digests"), 0)
}

// TestPoisonAmongTrouble: the store fails during the search for poison; only the poison is parked.
func TestPoisonAmongTrouble(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.refuse(t, `sig_n%`, "57014", 4)
	var signals []signal.Signal
	for _, id := range ids("n", 20) {
		signals = append(signals, click(id))
	}
	b.record(t, batchOf(append(signals, nul("bad"))...))
	expect(t, "parked", one[string](t, b, `SELECT string_agg(signal_id, ' ') FROM relay.parked`), "sig_bad")
	expect(t, "signals", b.count(t, "relay.signals"), 20)
	expect(t, "audits", b.count(t, "relay.audit"), 1)
}

// lostAnswer commits, and then says that the answer to COMMIT was lost.
type lostAnswer struct {
	*postgres.Store
	left int
}

func (l *lostAnswer) InTx(ctx context.Context, fn func(sink.Tx) error) error {
	err := l.Store.InTx(ctx, fn)
	if err == nil && l.left > 0 {
		l.left--
		return fmt.Errorf("%w: the connection broke", pg.ErrCommitUnknown)
	}
	return err
}

func TestACommitWhoseOutcomeIsNotKnownIsDoneAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.writer = writer(&lostAnswer{Store: b.store, left: 3})
	b.record(t, decision("dec_1", "", "itm_1"), batchOf(act("a", signal.AddToCart, 2), nul("bad")))
	expect(t, "signals", b.count(t, "relay.signals"), 1)
	expect(t, "deliveries", b.count(t, "delivery.entries"), 1)
	expect(t, "parked", b.count(t, "relay.parked"), 1)
	expect(t, "audits", b.count(t, "relay.audit"), 1)
	expect(t, "line", b.line(t, "itm_1"), "2 rev 1")
}

func TestHeadersOfAnyBytesAreStored(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i, text := range []string{"a\x00b", "\xff\xfe", "é\u2028😀", string([]byte{0xed, 0xa0, 0x80})} {
		r := request(click(fmt.Sprint(i)))
		r.Audit = signal.Audit{IP: text, UserAgent: text, AcceptLanguage: text, Origin: text, Referer: text}
		b.record(t, signalsOf(r))
	}
	expect(t, "audits", b.count(t, "relay.audit"), 4)
	expect(t, "parked", b.count(t, "relay.parked"), 0)
}
