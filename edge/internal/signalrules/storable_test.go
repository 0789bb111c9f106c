package signalrules

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"storefront.internal/edge/internal/signaljson"
	"storefront.internal/shared/signal"
	"storefront.internal/shared/testkit"
)

// FuzzAcceptedIsStorable: every valid element passes through Kafka's record into columns of the relay's
// types, and the members of the stored client can be queried.
func FuzzAcceptedIsStorable(f *testing.F) {
	conn, err := pgx.Connect(f.Context(), testkit.Postgres(f))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = conn.Close(f.Context()) })
	if _, err := conn.Exec(f.Context(), `CREATE TEMP TABLE accepted (
		signal_id text, type text, occurred_at timestamptz, decision_id text, item_id text, variant_id text,
		position int, quantity int, order_external_id text, visitor_id text, session_id text,
		client json)`); err != nil {
		f.Fatal(err)
	}
	for _, e := range []string{with(signal.Click), with(signal.Impression, "position", "100000"),
		with(signal.Purchase, "order_external_id", `"\ud83d\ude00\u0001\ufffe\uffff"`, "quantity", "1000000"),
		with(signal.Purchase, "order_external_id", `"\u0000"`),
		with(signal.Click, "occurred_at", `"2099-12-31T23:59:59.999999999Z"`),
		with(signal.Click, "visitor", `{"visitor_id":"vis_\u0000"}`),
		with(signal.Click, "client",
			`{"page_url":"https://a.example/\u007f\u0085é","languages":["es"],`+
				`"viewport":{"pixel_ratio":1e-300}}`),
		with(signal.Click, "client", `{"x":"\u0000","viewport":{"pixel_ratio":0.`+
			"00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000001"+
			`}}`),
		with(signal.Click, "client", `{"viewport":{"width":1,"z":1e999999}}`),
		with(signal.UpdateQuantity, "quantity", "-0")} {
		f.Add([]byte(`{"signals":[` + e + `]}`))
	}
	rules := New(ownDecisions{})
	f.Fuzz(func(t *testing.T, body []byte) {
		var d signaljson.Decoder
		if d.Decode(body) != nil {
			return
		}
		v := rules.Validator(&d, "con_1")
		for i := range d.Count() {
			var out Result
			if v.Validate(d.Element(i), &out) == "" {
				store(t, conn, &out.Signal)
			}
		}
	})
}

func store(t *testing.T, conn *pgx.Conn, sent *signal.Signal) {
	t.Helper()
	r, err := signal.DecodeRecord(signal.AppendRecord(nil,
		&signal.Record{RecordID: "r", ConnectionID: "con_1", StoreID: "str_1",
			ReceivedAt: time.Unix(0, 0), Signals: []signal.Recorded{{Signal: *sent}}}))
	if err != nil {
		t.Fatalf("%+v: %v", sent, err)
	}
	s := &r.Signals[0].Signal
	if s.ID != sent.ID || s.OrderExternalID != sent.OrderExternalID || !s.OccurredAt.Equal(sent.OccurredAt) {
		t.Errorf("sent %+v, read %+v", sent, s)
	}
	visitor := signal.Visitor{}
	if s.Visitor != nil {
		visitor = *s.Visitor
	}
	var client *string
	if s.Client != nil {
		text := string(s.Client)
		client = &text
	}
	if _, err := conn.Exec(t.Context(),
		`INSERT INTO accepted VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12::text::json)`,
		string(s.ID), string(s.Type), s.OccurredAt, string(s.DecisionID), string(s.ItemID),
		string(s.VariantID), s.Position, s.Quantity, s.OrderExternalID,
		string(visitor.VisitorID), string(visitor.SessionID), client); err != nil {
		t.Fatalf("%+v: %v", s, err)
	}
	if _, err := conn.Exec(t.Context(),
		`
		SELECT client::jsonb, client->>'page_url', client->'viewport'->>'pixel_ratio'
		FROM accepted`); err != nil {
		t.Fatalf("client %s: %v", s.Client, err)
	}
	if _, err := conn.Exec(t.Context(), `TRUNCATE accepted`); err != nil {
		t.Fatal(err)
	}
}
