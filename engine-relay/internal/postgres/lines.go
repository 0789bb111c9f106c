package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"storefront.internal/engine-relay/internal/cart"
	"storefront.internal/engine-relay/internal/record"
)

// makeLines comes before lockLines for all keys, in their order: whoever waits here holds no line, and whoever waits
// in lockLines has made or found every line, so two sinks never wait for one another.
const makeLines = `
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

// Lines returns the lines of the keys, locked until the transaction ends.
func (t *tx) Lines(ctx context.Context, keys []record.LineKey) ([]*cart.Line, error) {
	columns := lineColumns(keys)
	batch := &pgx.Batch{}
	batch.Queue(makeLines, columns...)
	batch.Queue(lockLines, columns...)
	results := t.SendBatch(ctx, batch)
	defer func() { _ = results.Close() }() // its error is one that was read below
	if _, err := results.Exec(); err != nil {
		return nil, fmt.Errorf("make %d cart lines: %w", len(keys), err)
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
		return nil, fmt.Errorf("lock %d cart lines: %d are there", len(keys), found.RowsAffected())
	}
	return lines, nil
}

// SaveLines writes lines that Lines has locked.
func (t *tx) SaveLines(ctx context.Context, keys []record.LineKey, lines []*cart.Line) error {
	quantities, revisions, states := make([]int32, len(keys)), make([]int64, len(keys)), make([][]byte, len(keys))
	for i, line := range lines {
		snapshot := line.Snapshot()
		quantities[i], revisions[i], states[i] = snapshot.Quantity, snapshot.Revision, line.AppendState(nil)
	}
	tag, err := t.Exec(ctx, saveLines, append(lineColumns(keys), quantities, revisions, states)...)
	if err != nil {
		return fmt.Errorf("save %d cart lines: %w", len(keys), err)
	}
	if int(tag.RowsAffected()) != len(keys) {
		return fmt.Errorf("save %d cart lines: %d were written", len(keys), tag.RowsAffected())
	}
	return nil
}

func lineColumns(keys []record.LineKey) []any {
	connections, decisions := make([]string, len(keys)), make([]string, len(keys))
	items, variants := make([]string, len(keys)), make([]string, len(keys))
	for i, k := range keys {
		connections[i], decisions[i], items[i], variants[i] = string(k.ConnectionID), string(k.DecisionID), string(k.ItemID), string(k.VariantID)
	}
	return []any{connections, decisions, items, variants}
}
