package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"storefront.internal/engine-relay/internal/sink"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/ident/decisionid"
	"storefront.internal/shared/pg"
	"storefront.internal/shared/signal"
)

// mintedAt is the partition key of a Decision: the instant in its id, the epoch when the id has none.
func mintedAt(id ident.DecisionID) time.Time {
	if at, ok := decisionid.MintedAt(string(id)); ok {
		return at
	}
	return time.Unix(0, 0).UTC()
}

const saveDecisions = `
INSERT INTO relay.decisions (connection_id, decision_id, minted_at, store_id, placement, source, served_at,
    items, engine_ids, visitor_id, session_id)
SELECT connection_id, decision_id, minted_at, store_id, placement, source, served_at, items::json,
    nullif(engine_ids, '')::json, nullif(visitor_id, ''), nullif(session_id, '')
FROM unnest($1::text[], $2::text[], $3::timestamptz[], $4::text[], $5::text[], $6::text[], $7::timestamptz[],
    $8::text[], $9::text[], $10::text[], $11::text[]) WITH ORDINALITY
    AS d (connection_id, decision_id, minted_at, store_id, placement, source, served_at, items, engine_ids,
        visitor_id, session_id, n)
ORDER BY n
ON CONFLICT DO NOTHING
RETURNING connection_id, decision_id`

// SaveDecisions implements sink.Tx. It flags signals only for Decisions of this transaction, so no other
// transaction updates the same rows.
func (t *tx) SaveDecisions(ctx context.Context, decisions []*signal.Decision) (int, error) {
	n := len(decisions)
	text := func(value func(d *signal.Decision) string) []string {
		return pg.Column(n, func(i int) string { return value(decisions[i]) })
	}
	rows, err := t.Query(ctx, saveDecisions,
		text(func(d *signal.Decision) string { return string(d.ConnectionID) }),
		text(func(d *signal.Decision) string { return string(d.DecisionID) }),
		pg.Column(n, func(i int) time.Time { return mintedAt(decisions[i].DecisionID) }),
		text(func(d *signal.Decision) string { return string(d.StoreID) }),
		text(func(d *signal.Decision) string { return d.Placement }),
		text(func(d *signal.Decision) string { return d.Source }),
		pg.Column(n, func(i int) time.Time { return decisions[i].ServedAt }),
		text(func(d *signal.Decision) string { return itemsJSON(d.Items) }),
		text(func(d *signal.Decision) string { return string(d.EngineIDs) }),
		text(func(d *signal.Decision) string { return string(visitorOf(d.Visitor).VisitorID) }),
		text(func(d *signal.Decision) string { return string(visitorOf(d.Visitor).SessionID) }))
	saved := make(map[sink.DecisionKey]struct{}, n)
	if err == nil {
		var key sink.DecisionKey
		_, err = pgx.ForEachRow(rows, []any{&key.ConnectionID, &key.DecisionID}, func() error {
			saved[key] = struct{}{}
			return nil
		})
	}
	if err != nil {
		return 0, fmt.Errorf("store %d decisions: %w", n, err)
	}
	if len(saved) == 0 {
		return 0, nil
	}
	stored := len(saved)
	return stored, t.setForeignItems(ctx, decisions, saved)
}

// setForeignItems flags the signals that were stored before their Decision: foreign_item says that the
// Decision lacks the item. The bounds of stored_at leave out partitions that cannot hold such a signal: none
// is older than its Decision's id, and none is in the future; a day on each side allows for wrong clocks.
const setForeignItems = `
UPDATE relay.signals AS s
SET foreign_item = NOT EXISTS (
    SELECT FROM json_array_elements(k.items::json) AS i WHERE i ->> 'item_id' = s.item_id)
FROM unnest($1::text[], $2::text[], $3::text[]) AS k (connection_id, decision_id, items)
WHERE s.connection_id = k.connection_id AND s.decision_id = k.decision_id AND s.foreign_item IS NULL
    AND s.stored_at > $4 AND s.stored_at < $5`

func (t *tx) setForeignItems(
	ctx context.Context, decisions []*signal.Decision, saved map[sink.DecisionKey]struct{},
) error {
	var connections, ids, items []string
	oldest := time.Now()
	for _, d := range decisions {
		key := sink.DecisionKey{ConnectionID: d.ConnectionID, DecisionID: d.DecisionID}
		if _, isNew := saved[key]; !isNew {
			continue
		}
		delete(saved, key) // the batch may have it twice
		connections, ids = append(connections, string(d.ConnectionID)), append(ids, string(d.DecisionID))
		items = append(items, itemsJSON(d.Items))
		if minted := mintedAt(d.DecisionID); minted.Before(oldest) {
			oldest = minted
		}
	}
	const day = 24 * time.Hour
	_, err := t.Exec(ctx, setForeignItems, connections, ids, items, oldest.Add(-day), time.Now().Add(day))
	if err != nil {
		return fmt.Errorf("flag foreign items of %d decisions: %w", len(ids), err)
	}
	return nil
}

func itemsJSON(items []signal.DecisionItem) string {
	dst := []byte{'['}
	for i := range items {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = signal.AppendDecisionItem(dst, &items[i])
	}
	return string(append(dst, ']'))
}

// served has bounds that leave out the partitions without a key.
const served = `
SELECT d.connection_id, d.decision_id, d.items, d.engine_ids
FROM unnest($1::text[], $2::text[], $3::timestamptz[]) AS k (connection_id, decision_id, minted_at)
JOIN relay.decisions AS d USING (connection_id, decision_id, minted_at)
WHERE d.minted_at BETWEEN $4 AND $5`

// Served implements sink.Tx.
func (t *tx) Served(ctx context.Context, keys []sink.DecisionKey) (map[sink.DecisionKey]sink.Served, error) {
	n := len(keys)
	minted := pg.Column(n, func(i int) time.Time { return mintedAt(keys[i].DecisionID) })
	rows, err := t.Query(ctx, served,
		pg.Column(n, func(i int) string { return string(keys[i].ConnectionID) }),
		pg.Column(n, func(i int) string { return string(keys[i].DecisionID) }),
		minted, slices.MinFunc(minted, time.Time.Compare), slices.MaxFunc(minted, time.Time.Compare))
	found := make(map[sink.DecisionKey]sink.Served, n)
	if err == nil {
		var key sink.DecisionKey
		var items, engineIDs []byte
		columns := []any{&key.ConnectionID, &key.DecisionID, &items, &engineIDs}
		_, err = pgx.ForEachRow(rows, columns, func() error {
			var err error
			found[key], err = servedFromDB(items, engineIDs)
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("read %d decisions: %w", n, err)
	}
	return found, nil
}

func servedFromDB(items, engineIDs []byte) (sink.Served, error) {
	var list []signal.DecisionItem
	if err := json.Unmarshal(items, &list); err != nil {
		return sink.Served{}, fmt.Errorf("items of a decision: %w", err)
	}
	s := sink.Served{Items: make(map[ident.ItemID]struct{}, len(list))}
	if len(engineIDs) > 0 {
		s.EngineIDs = append([]byte(nil), engineIDs...)
	}
	for _, item := range list {
		s.Items[item.ItemID] = struct{}{}
	}
	return s, nil
}
