package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"storefront.internal/engine-relay/internal/cart"
	"storefront.internal/engine-relay/internal/sink"
	"storefront.internal/shared/pg"
)

// createLines runs for all keys, in their order, before lockLines. A transaction that waits in createLines
// holds no lock on a line, and one that waits in lockLines has created or found all of its lines; so two
// sinks do not deadlock.
const createLines = `
INSERT INTO relay.cart_lines (connection_id, decision_id, item_id, variant_id)
SELECT connection_id, decision_id, item_id, variant_id
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) WITH ORDINALITY
    AS k (connection_id, decision_id, item_id, variant_id, n)
ORDER BY n
ON CONFLICT DO NOTHING`

const lockLines = `
SELECT k.n, l.revision, l.state
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) WITH ORDINALITY
    AS k (connection_id, decision_id, item_id, variant_id, n)
JOIN relay.cart_lines AS l USING (connection_id, decision_id, item_id, variant_id)
ORDER BY k.n
FOR UPDATE OF l`

const saveLines = `
UPDATE relay.cart_lines AS l
SET quantity = k.quantity, revision = k.revision, state = k.state, updated_at = now()
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::integer[], $6::bigint[], $7::bytea[])
    AS k (connection_id, decision_id, item_id, variant_id, quantity, revision, state)
WHERE l.connection_id = k.connection_id AND l.decision_id = k.decision_id AND l.item_id = k.item_id
    AND l.variant_id = k.variant_id`

// Lines implements sink.Tx.
func (t *tx) Lines(ctx context.Context, keys []sink.LineKey) ([]*cart.Line, error) {
	columns := lineColumns(keys)
	batch := &pgx.Batch{}
	batch.Queue(createLines, columns...)
	batch.Queue(lockLines, columns...)
	results := t.SendBatch(ctx, batch)
	defer func() { _ = results.Close() }() // its error is read below
	if _, err := results.Exec(); err != nil {
		return nil, fmt.Errorf("create %d cart lines: %w", len(keys), err)
	}
	rows, err := results.Query()
	if err != nil {
		return nil, fmt.Errorf("lock %d cart lines: %w", len(keys), err)
	}
	lines := make([]*cart.Line, len(keys))
	var n, revision int64
	var state []byte
	found, err := pgx.ForEachRow(rows, []any{&n, &revision, &state}, func() error {
		var err error
		lines[n-1], err = cart.ParseLine(revision, state)
		return err
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("lock %d cart lines: %w", len(keys), err)
	case int(found.RowsAffected()) != len(keys):
		return nil, fmt.Errorf("lock %d cart lines: %d found", len(keys), found.RowsAffected())
	}
	return lines, nil
}

// SaveLines implements sink.Tx, for lines that Lines has locked.
func (t *tx) SaveLines(ctx context.Context, keys []sink.LineKey, lines []*cart.Line) error {
	tag, err := t.Exec(ctx, saveLines, append(lineColumns(keys),
		pg.Column(len(lines), func(i int) int32 { return lines[i].Snapshot().Quantity }),
		pg.Column(len(lines), func(i int) int64 { return lines[i].Revision }),
		pg.Column(len(lines), func(i int) []byte { return lines[i].AppendState(nil) }))...)
	if err != nil {
		return fmt.Errorf("save %d cart lines: %w", len(keys), err)
	}
	if int(tag.RowsAffected()) != len(keys) {
		return fmt.Errorf("save %d cart lines: %d saved", len(keys), tag.RowsAffected())
	}
	return nil
}

func lineColumns(keys []sink.LineKey) []any {
	n := len(keys)
	return []any{
		pg.Column(n, func(i int) string { return string(keys[i].ConnectionID) }),
		pg.Column(n, func(i int) string { return string(keys[i].DecisionID) }),
		pg.Column(n, func(i int) string { return string(keys[i].ItemID) }),
		pg.Column(n, func(i int) string { return string(keys[i].VariantID) }),
	}
}
