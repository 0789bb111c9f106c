package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"storefront.internal/engine-relay/internal/record"
	"storefront.internal/shared/signal"
)

// signalColumns returns the columns of relay.signals that the sink fills, in the order of signalValues.
func signalColumns() []string {
	return []string{"connection_id", "decision_id", "signal_id", "store_id", "type", "item_id", "variant_id", "order_external_id",
		"visitor_id", "session_id", "record_id", "received_at", "occurred_at", "position", "quantity", "record_index", "crawler",
		"foreign_item"}
}

func signalValues(s *record.Signal) []any {
	visitor := signal.Visitor{}
	if s.Visitor != nil {
		visitor = *s.Visitor
	}
	return []any{string(s.ConnectionID), string(s.DecisionID), string(s.ID), string(s.StoreID), string(s.Type), orNull(s.ItemID),
		orNull(s.VariantID), orNull(s.OrderExternalID), orNull(visitor.VisitorID), orNull(visitor.SessionID), s.RecordID,
		s.ReceivedAt, s.OccurredAt, s.Position, s.Quantity, int16(s.Index), s.Crawler, s.ForeignItem}
}

// SaveSignals stores signals that are new.
func (t *tx) SaveSignals(ctx context.Context, signals []record.Signal) error {
	rows := pgx.CopyFromSlice(len(signals), func(i int) ([]any, error) { return signalValues(&signals[i]), nil })
	if _, err := t.CopyFrom(ctx, pgx.Identifier{"relay", "signals"}, signalColumns(), rows); err != nil {
		return fmt.Errorf("store %d signals: %w", len(signals), err)
	}
	return nil
}

func auditColumns() []string {
	return []string{"connection_id", "record_id", "received_at", "crawler", "ip", "user_agent", "accept_language", "origin",
		"referer", "clients"}
}

func auditValues(a *record.Audit) []any {
	var clients any
	if a.Clients != nil {
		clients = a.Clients
	}
	return []any{string(a.ConnectionID), a.RecordID, a.ReceivedAt, a.Crawler, storable(a.IP), storable(a.UserAgent),
		storable(a.AcceptLanguage), storable(a.Origin), storable(a.Referer), clients}
}

// storable is a header's text as the database takes it: header bytes are anything, and no signal is lost for them.
func storable(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "\x00", "\ufffd")
}

// SaveAudits stores what is kept of the requests.
func (t *tx) SaveAudits(ctx context.Context, audits []record.Audit) error {
	rows := pgx.CopyFromSlice(len(audits), func(i int) ([]any, error) { return auditValues(&audits[i]), nil })
	if _, err := t.CopyFrom(ctx, pgx.Identifier{"relay", "audit"}, auditColumns(), rows); err != nil {
		return fmt.Errorf("store %d audits: %w", len(audits), err)
	}
	return nil
}
