package postgres

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"storefront.internal/engine-relay/internal/sink"
	"storefront.internal/shared/pg"
	"storefront.internal/shared/signal"
)

// Rows are sent as arrays of one statement, not by COPY. While a server waits for the rest of a COPY, neither
// statement_timeout nor idle_in_transaction_session_timeout applies; a relay that hangs in the middle of one
// would hold its ledger keys, and block every other relay, without end.

const saveSignals = `
INSERT INTO relay.signals (connection_id, decision_id, signal_id, store_id, type, item_id, variant_id,
    order_external_id, visitor_id, session_id, record_id, received_at, occurred_at, position, quantity,
    record_index, crawler, foreign_item)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[],
    $8::text[], $9::text[], $10::text[], $11::uuid[], $12::timestamptz[], $13::timestamptz[],
    $14::integer[], $15::integer[], $16::smallint[], $17::boolean[], $18::boolean[])`

// SaveSignals implements sink.Tx.
func (t *tx) SaveSignals(ctx context.Context, signals []sink.Signal) error {
	n := len(signals)
	text := func(value func(s *sink.Signal) string) []string {
		return pg.Column(n, func(i int) string { return value(&signals[i]) })
	}
	optional := func(value func(s *sink.Signal) string) []*string {
		return pg.Column(n, func(i int) *string { return orNull(value(&signals[i])) })
	}
	_, err := t.Exec(ctx, saveSignals,
		text(func(s *sink.Signal) string { return string(s.ConnectionID) }),
		text(func(s *sink.Signal) string { return string(s.DecisionID) }),
		text(func(s *sink.Signal) string { return string(s.ID) }),
		text(func(s *sink.Signal) string { return string(s.StoreID) }),
		text(func(s *sink.Signal) string { return string(s.Type) }),
		optional(func(s *sink.Signal) string { return string(s.ItemID) }),
		optional(func(s *sink.Signal) string { return string(s.VariantID) }),
		optional(func(s *sink.Signal) string { return s.OrderExternalID }),
		optional(func(s *sink.Signal) string { return string(visitorOf(s.Visitor).VisitorID) }),
		optional(func(s *sink.Signal) string { return string(visitorOf(s.Visitor).SessionID) }),
		pg.Column(n, func(i int) pgtype.UUID { return uuidOf(signals[i].RecordID) }),
		pg.Column(n, func(i int) time.Time { return signals[i].ReceivedAt }),
		pg.Column(n, func(i int) time.Time { return signals[i].OccurredAt }),
		pg.Column(n, func(i int) *int32 { return signals[i].Position }),
		pg.Column(n, func(i int) *int32 { return signals[i].Quantity }),
		pg.Column(n, func(i int) int16 { return int16(signals[i].Index) }),
		pg.Column(n, func(i int) bool { return signals[i].Crawler }),
		pg.Column(n, func(i int) *bool { return signals[i].ForeignItem }))
	if err != nil {
		return fmt.Errorf("store %d signals: %w", n, err)
	}
	return nil
}

func visitorOf(v *signal.Visitor) signal.Visitor {
	if v == nil {
		return signal.Visitor{}
	}
	return *v
}

// orNull returns NULL for a text that is empty when it is absent.
func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

const saveAudits = `
INSERT INTO relay.audit (connection_id, ip, user_agent, accept_language, origin, referer, clients, record_id,
    received_at, crawler)
SELECT connection_id, ip, user_agent, accept_language, origin, referer, nullif(clients, '')::json, record_id,
    received_at, crawler
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::uuid[],
    $9::timestamptz[], $10::boolean[])
    AS a (connection_id, ip, user_agent, accept_language, origin, referer, clients, record_id, received_at,
        crawler)`

// SaveAudits implements sink.Tx. Headers may have any bytes, and no signal is lost for them.
func (t *tx) SaveAudits(ctx context.Context, audits []sink.Audit) error {
	n := len(audits)
	header := func(value func(a *sink.Audit) string) []string {
		return pg.Column(n, func(i int) string { return pg.SafeText(value(&audits[i]), math.MaxInt) })
	}
	_, err := t.Exec(ctx, saveAudits,
		pg.Column(n, func(i int) string { return string(audits[i].ConnectionID) }),
		header(func(a *sink.Audit) string { return a.IP }),
		header(func(a *sink.Audit) string { return a.UserAgent }),
		header(func(a *sink.Audit) string { return a.AcceptLanguage }),
		header(func(a *sink.Audit) string { return a.Origin }),
		header(func(a *sink.Audit) string { return a.Referer }),
		pg.Column(n, func(i int) string { return string(audits[i].Clients) }),
		pg.Column(n, func(i int) pgtype.UUID { return uuidOf(audits[i].RecordID) }),
		pg.Column(n, func(i int) time.Time { return audits[i].ReceivedAt }),
		pg.Column(n, func(i int) bool { return audits[i].Crawler }))
	if err != nil {
		return fmt.Errorf("store %d audits: %w", n, err)
	}
	return nil
}
