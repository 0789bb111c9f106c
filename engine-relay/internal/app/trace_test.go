package app

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"storefront.internal/shared/signal"
	"storefront.internal/shared/stream"
	"storefront.internal/shared/testkit"
	"storefront.internal/shared/tracing"
)

// TestTraceThroughKafkaToTheEngine: the trace that came in the record's header is gone on with by the sink
// and by the engine's call.
func TestTraceThroughKafkaToTheEngine(t *testing.T) {
	t.Parallel()
	b, e, c := setup(t), newEngine(t), testkit.NewCollector(t)
	_, stop := b.relay(
		"RELAY_ENGINE_URL="+e.URL,
		"RELAY_ENGINE_TOKEN=secret",
		"RELAY_TRACE_ENDPOINT="+c.URL,
		"RELAY_TRACE_RATIO=0",
	)
	const trace, edge = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	b.send(
		b.decisions,
		signal.AppendDecision(
			nil,
			&signal.Decision{DecisionID: "dec_1", ConnectionID: "con_a", StoreID: "str_a", Placement: "home",
				Source: "engine", ServedAt: time.Now().UTC()},
		),
	)
	record := signal.AppendRecord(nil, &signal.Record{
		RecordID: uuid.NewString(), ConnectionID: "con_a", StoreID: "str_a", ReceivedAt: time.Now().UTC(),
		Signals: []signal.Recorded{
			{
				Signal: signal.Signal{
					ID:         "sig_a",
					Type:       signal.Impression,
					OccurredAt: time.Now().UTC(),
					DecisionID: "dec_1",
					ItemID:     "itm_1",
				},
			},
		},
	})
	ctx, cancel := context.WithTimeout(
		tracing.WithTraceparent(t.Context(), "00-"+trace+"-"+edge+"-01"),
		time.Minute,
	)
	defer cancel()
	if outcome, err := b.produce[b.signals].Produce(ctx, record); outcome != stream.Acknowledged {
		t.Fatal(outcome, err)
	}
	b.eventually("the interaction", func() bool { return len(e.bodies()) == 1 })
	stop() // sends what is left
	for _, name := range []string{"store signals", "deliver interactions"} {
		found := c.SpansNamed(name)
		if len(found) == 0 || found[0].TraceID != trace || found[0].ParentSpanID != edge ||
			found[0].Service != "storefront-engine-relay" {
			t.Fatalf("%s: %+v", name, found)
		}
	}
	want := "00-" + trace + "-" + c.SpansNamed("deliver interactions")[0].SpanID + "-01"
	if got := e.traceparents(); !slices.Contains(got, want) {
		t.Errorf("the engine received %q, want %q", got, want)
	}
}
