package postgres

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"storefront.internal/engine-relay/internal/record"
	"storefront.internal/shared/signal"
)

// The rows go as arrays of one statement, not as a COPY: a server that waits for the rest of a COPY heeds neither the
// statement's nor the idle transaction's timeout, so a relay that stands still in the middle of one would hold its
// ledger keys, and with them every other relay, for as long as it stands.

const saveSignals = `
INSERT INTO relay.signals (connection_id, decision_id, signal_id, store_id, type, item_id, variant_id, order_external_id,
    visitor_id, session_id, record_id, received_at, occurred_at, position, quantity, record_index, crawler, foreign_item)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
    $9::text[], $10::text[], $11::uuid[], $12::timestamptz[], $13::timestamptz[], $14::integer[], $15::integer[],
    $16::smallint[], $17::boolean[], $18::boolean[])`

// SaveSignals stores signals that are new.
func (t *tx) SaveSignals(ctx context.Context, signals []record.Signal) error {
	n := len(signals)
	texts := newColumns[string](5, n)    // connection_id, decision_id, signal_id, store_id, type
	options := newColumns[*string](5, n) // item_id, variant_id, order_external_id, visitor_id, session_id
	records, received, occurred := make([]pgtype.UUID, n), make([]time.Time, n), make([]time.Time, n)
	positions, quantities, indices := make([]*int32, n), make([]*int32, n), make([]int16, n)
	crawlers, foreign := make([]bool, n), make([]*bool, n)
	for i := range signals {
		s := &signals[i]
		visitor := signal.Visitor{}
		if s.Visitor != nil {
			visitor = *s.Visitor
		}
		texts.set(i, string(s.ConnectionID), string(s.DecisionID), string(s.ID), string(s.StoreID), string(s.Type))
		options.set(i, orNull(s.ItemID), orNull(s.VariantID), orNull(s.OrderExternalID), orNull(visitor.VisitorID), orNull(visitor.SessionID))
		records[i], received[i], occurred[i] = pgtype.UUID{Bytes: s.RecordID, Valid: true}, s.ReceivedAt, s.OccurredAt
		positions[i], quantities[i], indices[i] = s.Position, s.Quantity, int16(s.Index)
		crawlers[i], foreign[i] = s.Crawler, s.ForeignItem
	}
	args := append(texts.args(), options.args()...)
	args = append(args, records, received, occurred, positions, quantities, indices, crawlers, foreign)
	if _, err := t.Exec(ctx, saveSignals, args...); err != nil {
		return fmt.Errorf("store %d signals: %w", n, err)
	}
	return nil
}

const saveAudits = `
INSERT INTO relay.audit (connection_id, ip, user_agent, accept_language, origin, referer, clients, record_id, received_at, crawler)
SELECT connection_id, ip, user_agent, accept_language, origin, referer, nullif(clients, '')::json, record_id, received_at, crawler
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::uuid[], $9::timestamptz[],
    $10::boolean[])
    AS a (connection_id, ip, user_agent, accept_language, origin, referer, clients, record_id, received_at, crawler)`

// SaveAudits stores what is kept of the requests.
func (t *tx) SaveAudits(ctx context.Context, audits []record.Audit) error {
	n := len(audits)
	texts := newColumns[string](7, n)
	records, received, crawlers := make([]pgtype.UUID, n), make([]time.Time, n), make([]bool, n)
	for i := range audits {
		a := &audits[i]
		texts.set(i, string(a.ConnectionID), storable(a.IP), storable(a.UserAgent), storable(a.AcceptLanguage), storable(a.Origin),
			storable(a.Referer), string(a.Clients))
		records[i], received[i], crawlers[i] = pgtype.UUID{Bytes: a.RecordID, Valid: true}, a.ReceivedAt, a.Crawler
	}
	if _, err := t.Exec(ctx, saveAudits, append(texts.args(), records, received, crawlers)...); err != nil {
		return fmt.Errorf("store %d audits: %w", n, err)
	}
	return nil
}

// storable is a header's text as the database takes it: header bytes are anything, and no signal is lost for them.
func storable(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "\x00", "\ufffd")
}

// columns are arrays of the same type and length, one per column of a statement.
type columns[T any] [][]T

func newColumns[T any](width, rows int) columns[T] {
	c := make(columns[T], width)
	for i := range c {
		c[i] = make([]T, rows)
	}
	return c
}

// set writes row i.
func (c columns[T]) set(i int, row ...T) {
	for column, value := range row {
		c[column][i] = value
	}
}

func (c columns[T]) args() []any {
	args := make([]any, len(c))
	for i := range c {
		args[i] = c[i]
	}
	return args
}

// orNull is the column's value of what an empty text means the absence of.
func orNull[T ~string](s T) *string {
	if s == "" {
		return nil
	}
	text := string(s)
	return &text
}
