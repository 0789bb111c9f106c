package app

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"storefront.internal/shared/signal"
)

func TestFromTheTopicToTheEngine(t *testing.T) {
	t.Parallel()
	b, e := setup(t), newEngine(t)
	a, stop := b.relay("RELAY_ENGINE_URL="+e.URL, "RELAY_ENGINE_TOKEN=secret")
	b.eventually("ready", func() bool { ok, _ := b.ready(a); return ok })
	b.send(
		b.decisions,
		signal.AppendDecision(
			nil,
			&signal.Decision{DecisionID: "dec_1", ConnectionID: "con_a", StoreID: "str_a", Placement: "home",
				Source: "engine", ServedAt: time.Now(), Items: []signal.DecisionItem{{ItemID: "itm_1"}},
				EngineIDs: json.RawMessage(`{"r":1}`)},
		),
	)
	b.await("the decision", `SELECT count(*) = 1 FROM relay.decisions`)
	b.sendSignals("a", "b")
	b.sendSignals("b", "c")
	b.eventually("three interactions", func() bool { return len(e.bodies()) >= 3 })
	revisions := map[string]bool{}
	for _, body := range e.bodies() {
		var got struct {
			SignalID string          `json:"signal_id"`
			Engine   json.RawMessage `json:"engine_ids"`
			Line     struct {
				Quantity, Revision int
			} `json:"cart_line"`
		}
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatal(err)
		}
		revisions[fmt.Sprint(got.Line.Revision)] = true
		if got.Line.Quantity != got.Line.Revision || string(got.Engine) != `{"r":1}` {
			t.Errorf("%s", body)
		}
	}
	if len(e.bodies()) != 3 || len(revisions) != 3 {
		t.Errorf("%d interactions with revisions %v", len(e.bodies()), revisions)
	}
	b.await("an empty queue", `SELECT NOT EXISTS (SELECT FROM delivery.entries)`)
	if ahead := b.metric(a, "storefront_relay_partition_days_ahead"); ahead != "7" {
		t.Errorf("partitions ahead: %q", ahead)
	}
	if stored := b.metric(a, `storefront_relay_sink_signals_total{result="stored"}`); stored != "3" {
		t.Errorf("stored: %q", stored)
	}
	stop()
}

// TestRelaysComeAndGo: partitions move between relays while signals flow, and without an engine everything
// waits.
func TestRelaysComeAndGo(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const rounds, perRound = 6, 40
	stops := []func(){}
	for round := range rounds {
		_, stop := b.relay()
		stops = append(stops, stop)
		for i := range perRound {
			id := fmt.Sprintf("%d_%d", round, i)
			b.sendSignals(id+"a", id+"b")
			if i%5 == 0 {
				b.sendSignals(id+"a", id+"b") // as after a 503 whose record landed
			}
		}
		if round >= 2 {
			stops[round-2]()
		}
	}
	b.await("all signals", `SELECT count(*) >= $1 FROM relay.signals`, 2*rounds*perRound)
	for _, stop := range stops {
		stop()
	}
	b.await(
		"each once",
		`SELECT count(*) = $1 AND count(DISTINCT signal_id) = $1 FROM relay.signals`,
		2*rounds*perRound,
	)
	b.await("the line", `SELECT quantity = $1 AND revision = $1 FROM relay.cart_lines`, 2*rounds*perRound)
	b.await("the queue", `SELECT count(*) = $1 FROM delivery.entries`, 2*rounds*perRound)
	b.await("nothing parked", `SELECT count(*) = 0 FROM relay.parked`)
}

// TestBrokenConnections: the server ends the relay's sessions in the middle of their transactions, again and
// again.
func TestBrokenConnections(t *testing.T) {
	t.Parallel()
	b := setup(t)
	a, _ := b.relay()
	for i := range 150 {
		b.sendSignals(fmt.Sprintf("%da", i), fmt.Sprintf("%db", i))
		if i%5 == 0 {
			b.await("ended sessions", `SELECT count(pg_terminate_backend(pid)) >= 0 FROM pg_stat_activity
				WHERE datname = current_database() AND application_name = 'storefront-relay'`)
		}
	}
	b.await("each once", `SELECT count(*) = 300 AND count(DISTINCT signal_id) = 300 FROM relay.signals`)
	b.await("the line", `SELECT quantity = 300 AND revision = 300 FROM relay.cart_lines`)
	b.await("nothing parked", `SELECT count(*) = 0 FROM relay.parked`)
	b.eventually("ready again", func() bool { ok, _ := b.ready(a); return ok })
}

// TestALostOffsetHaltsUntilAnOperatorAccepts: the group stands at an offset that Kafka does not have.
func TestALostOffsetHaltsUntilAnOperatorAccepts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.sendSignals("a")
	b.commit(1_000_000)
	a, stop := b.relay()
	b.eventually(
		"halted",
		func() bool { _, text := b.ready(a); return strings.Contains(text, "[-] offsets") },
	)
	stop()
	b.await("nothing stored", `SELECT count(*) = 0 FROM relay.signals`)
	again, _ := b.relay("RELAY_KAFKA_ACCEPT_LOSS=true")
	b.await("what is there", `SELECT count(*) = 1 FROM relay.signals`)
	b.eventually("ready", func() bool { ok, _ := b.ready(again); return ok })
}

func TestGarbageIsParkedAndNeighboursAreStored(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.relay()
	for i := range 20 {
		b.send(b.signals, []byte("garbage"))
		b.sendSignals(fmt.Sprint(i))
	}
	b.await("neighbours", `SELECT count(*) = 20 FROM relay.signals`)
	b.await(
		"garbage with its place",
		`SELECT count(*) = 20 AND bool_and(bytes = 'garbage' AND topic = $1 AND reason = 'undecodable') FROM relay.parked`,
		b.signals,
	)
}

func TestANewerRecordWaitsForANewerRelay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	a, stop := b.relay()
	b.send(b.decisions, []byte(`{"schema":2}`))
	b.eventually("halted", func() bool { return b.metric(a, "storefront_relay_halted_partitions") == "1" })
	b.sendSignals("a")
	b.await("the other topic goes on", `SELECT count(*) = 1 FROM relay.signals`)
	stop()
	again, _ := b.relay()
	b.eventually(
		"read again",
		func() bool { return b.metric(again, "storefront_relay_halted_partitions") == "1" },
	)
	b.await("nothing parked", `SELECT count(*) = 0 FROM relay.parked`)
}

func TestItStartsWhileAllServicesAreDown(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for what, environ := range map[string][]string{
		"PostgreSQL": {"RELAY_DATABASE_URL=postgres://unknown:x@127.0.0.1:1/none"},
		"Kafka":      {"RELAY_KAFKA_BROKERS=127.0.0.1:1"},
		"both": {"RELAY_DATABASE_URL=postgres://unknown:x@127.0.0.1:1/none",
			"RELAY_KAFKA_BROKERS=127.0.0.1:1", "RELAY_ENGINE_URL=http://127.0.0.1:1", "RELAY_ENGINE_TOKEN=x"},
	} {
		a, stop := b.relay(environ...)
		b.eventually("listening", func() bool { return a.AdminAddr() != "" })
		if ok, text := b.ready(a); ok || !strings.Contains(text, "[-]") {
			t.Errorf("without %s: %s", what, text)
		}
		stop()
	}
}
