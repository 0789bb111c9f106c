package postgres_test

import (
	"context"
	"testing"
	"time"

	"storefront.internal/engine-relay/internal/sink"
	"storefront.internal/shared/pg"
	"storefront.internal/shared/signal"
	"storefront.internal/shared/testkit"
)

const waiting = "relay.parked WHERE replayed_at IS NULL AND dropped_at IS NULL"

// replay requests the replay of the parked records that match, as control does, and runs a Replayer until it
// has executed the requests.
func (b *bundle) replay(t *testing.T, condition string) {
	t.Helper()
	control := testkit.Pool(t, testkit.PostgresAs(t, b.url, "storefront_control"))
	if _, err := control.Exec(t.Context(),
		"UPDATE relay.parked SET replay_requested_at = now() WHERE "+condition); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- sink.NewReplayer(sink.ReplayerConfig{Store: b.store, Writer: b.writer,
			Decisions: decisionsTopic, Logger: discard()}).Run(ctx)
	}()
	for deadline := time.Now().Add(30 * time.Second); b.count(t,
		"relay.parked WHERE replay_requested_at IS NOT NULL AND replayed_at IS NULL") > 0; {
		if time.Now().After(deadline) {
			t.Fatal("the replay was not executed")
		}
		time.Sleep(10 * time.Millisecond)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestAParkedSignalIsReplayed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.refuse(t, "sig_bad%", "22021", 0)
	b.record(t, batchOf(click("a"), click("bad"), click("c")))
	b.replay(t, "signal_id = 'sig_bad'")
	expect(t, "refused again and parked", b.count(t, waiting+
		" AND replay_requested_at IS NULL AND replay_failed_at IS NOT NULL AND octet_length(bytes) > 32"), 1)
	expect(t, "signals", b.count(t, "relay.signals"), 2)

	b.exec(t, `DROP TRIGGER refuse ON relay.signals`)
	b.replay(t, "signal_id = 'sig_bad'")
	expect(t, "signals", b.count(t, "relay.signals"), 3)
	expect(t, "deliveries", b.count(t, "delivery.entries WHERE id = 'sig_bad'"), 1)
	expect(t, "only a digest of the bytes is left",
		b.count(t, "relay.parked WHERE replayed_at IS NOT NULL AND octet_length(bytes) = 32"), 1)
	if n, err := b.store.Parked(t.Context()); err != nil || n != 0 {
		t.Errorf("the gauge of the alert says %d, %v", n, err)
	}

	b.exec(t, `UPDATE relay.parked SET replayed_at = NULL, bytes = $1`, batchOf(click("bad")).Value)
	b.replay(t, "true")
	expect(t, "replayed twice and stored once", b.count(t, "relay.signals"), 3)
}

func TestAWholeParkedRecordIsReplayed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.record(t, message(signalsTopic, []byte("x")), message(decisionsTopic, []byte("{}")))
	b.replay(t, "true")
	expect(t, "still unreadable", b.count(t,
		waiting+" AND reason = 'undecodable' AND replay_failed_at IS NOT NULL"), 2)

	// A later release can read them. One signal is refused on its own.
	b.exec(t, `UPDATE relay.parked SET bytes = $1 WHERE topic = 'signals'`,
		batchOf(click("a"), nul("bad"), act("c", signal.Click, -1)).Value)
	b.exec(t, `UPDATE relay.parked SET bytes = $1 WHERE topic = 'decisions'`, decision("dec_1", "", "itm_1").Value)
	b.replay(t, "true")
	expect(t, "decisions", b.count(t, "relay.decisions"), 1)
	expect(t, "signals", b.count(t, "relay.signals"), 2)
	expect(t, "replayed", b.count(t, "relay.parked WHERE replayed_at IS NOT NULL AND signal_index = -1"), 2)
	expect(t, "the refused signal", one[string](t, b,
		"SELECT string_agg(signal_id || sqlstate, ' ') FROM "+waiting), "sig_bad22021")
}

func TestWhatControlMayDoWithParkedRecords(t *testing.T) {
	t.Parallel()
	b := setup(t)
	control := testkit.Pool(t, testkit.PostgresAs(t, b.url, "storefront_control"))
	for _, forbidden := range []string{`DELETE FROM relay.parked`, `UPDATE relay.parked SET topic = ''`,
		`UPDATE relay.parked SET replayed_at = now()`,
		`INSERT INTO relay.parked (topic) VALUES ('x')`} {
		if _, err := control.Exec(t.Context(), forbidden); pg.SQLState(err) != "42501" {
			t.Errorf("%s: %v", forbidden, err)
		}
	}
}
