package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"storefront.internal/engine-relay/internal/record"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/ident/decisionid"
	"storefront.internal/shared/signal"
)

// mintedAt is the partition key of a Decision: the instant in its id, the epoch when it carries none.
func mintedAt(id ident.DecisionID) time.Time {
	if at, ok := decisionid.MintedAt(string(id)); ok {
		return at
	}
	return time.Unix(0, 0).UTC()
}

const saveDecisions = `
INSERT INTO relay.decisions (connection_id, decision_id, minted_at, store_id, placement, source, served_at, items, engine_ids,
    visitor_id, session_id)
SELECT connection_id, decision_id, minted_at, store_id, placement, source, served_at, items::json, nullif(engine_ids, '')::json,
    nullif(visitor_id, ''), nullif(session_id, '')
FROM unnest($1::text[], $2::text[], $3::timestamptz[], $4::text[], $5::text[], $6::text[], $7::timestamptz[], $8::text[],
    $9::text[], $10::text[], $11::text[]) WITH ORDINALITY
    AS d (connection_id, decision_id, minted_at, store_id, placement, source, served_at, items, engine_ids, visitor_id,
        session_id, n)
ORDER BY n
ON CONFLICT DO NOTHING
RETURNING connection_id, decision_id`

// markEarly marks the signals that were stored before their Decision: foreign_item says that it did not hold the item.
// The bounds leave out the days that cannot hold such a signal: none is older than its Decision's id, and none is yet
// to come; a day each way is for clocks that are wrong.
const markEarly = `
UPDATE relay.signals AS s
SET foreign_item = NOT EXISTS (SELECT FROM json_array_elements(k.items::json) AS i WHERE i ->> 'item_id' = s.item_id)
FROM unnest($1::text[], $2::text[], $3::text[]) AS k (connection_id, decision_id, items)
WHERE s.connection_id = k.connection_id AND s.decision_id = k.decision_id AND s.foreign_item IS NULL
    AND s.stored_at > $4 AND s.stored_at < $5`

// SaveDecisions stores what is not there yet and returns how many that were. The signals that it marks belong to
// Decisions of this very transaction, so that no other one wants the same rows.
func (t *tx) SaveDecisions(ctx context.Context, decisions []*signal.Decision) (int, error) {
	rows, err := t.Query(ctx, saveDecisions, decisionColumns(decisions)...)
	if err != nil {
		return 0, fmt.Errorf("store %d decisions: %w", len(decisions), err)
	}
	saved := make(map[record.DecisionKey]struct{}, len(decisions))
	var connection, id string
	if _, err := pgx.ForEachRow(rows, []any{&connection, &id}, func() error {
		saved[record.DecisionKey{ConnectionID: ident.ConnectionID(connection), DecisionID: ident.DecisionID(id)}] = struct{}{}
		return nil
	}); err != nil {
		return 0, fmt.Errorf("store %d decisions: %w", len(decisions), err)
	}
	if len(saved) == 0 {
		return 0, nil
	}
	n := len(saved)
	return n, t.markEarly(ctx, decisions, saved)
}

func (t *tx) markEarly(ctx context.Context, decisions []*signal.Decision, saved map[record.DecisionKey]struct{}) error {
	var connections, ids, items []string
	oldest := time.Now()
	for _, d := range decisions {
		key := record.DecisionKey{ConnectionID: d.ConnectionID, DecisionID: d.DecisionID}
		if _, isNew := saved[key]; !isNew {
			continue
		}
		delete(saved, key) // the batch may hold it twice
		connections, ids, items = append(connections, string(d.ConnectionID)), append(ids, string(d.DecisionID)), append(items, itemsJSON(d.Items))
		if minted := mintedAt(d.DecisionID); minted.Before(oldest) {
			oldest = minted
		}
	}
	const day = 24 * time.Hour
	if _, err := t.Exec(ctx, markEarly, connections, ids, items, oldest.Add(-day), time.Now().Add(day)); err != nil {
		return fmt.Errorf("mark the signals of %d decisions: %w", len(ids), err)
	}
	return nil
}

// decisionColumns turns rows into the arrays of saveDecisions.
func decisionColumns(decisions []*signal.Decision) []any {
	n := len(decisions)
	connections, ids, stores, placements, sources := make([]string, n), make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	items, engineIDs, visitors, sessions := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	minted, served := make([]time.Time, n), make([]time.Time, n)
	for i, d := range decisions {
		connections[i], ids[i], minted[i], stores[i] = string(d.ConnectionID), string(d.DecisionID), mintedAt(d.DecisionID), string(d.StoreID)
		placements[i], sources[i], served[i] = d.Placement, d.Source, d.ServedAt
		items[i], engineIDs[i] = itemsJSON(d.Items), string(d.EngineIDs)
		if d.Visitor != nil {
			visitors[i], sessions[i] = string(d.Visitor.VisitorID), string(d.Visitor.SessionID)
		}
	}
	return []any{connections, ids, minted, stores, placements, sources, served, items, engineIDs, visitors, sessions}
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

const served = `
SELECT d.connection_id, d.decision_id, d.items, d.engine_ids
FROM unnest($1::text[], $2::text[], $3::timestamptz[]) AS k (connection_id, decision_id, minted_at)
JOIN relay.decisions AS d USING (connection_id, decision_id, minted_at)
WHERE d.minted_at BETWEEN $4 AND $5`

// Served returns the Decisions whose rows are there. The bounds leave out the days that no key lies in.
func (t *tx) Served(ctx context.Context, keys []record.DecisionKey) (map[record.DecisionKey]record.Served, error) {
	connections, ids, minted := make([]string, len(keys)), make([]string, len(keys)), make([]time.Time, len(keys))
	var first, last time.Time
	for i, k := range keys {
		connections[i], ids[i], minted[i] = string(k.ConnectionID), string(k.DecisionID), mintedAt(k.DecisionID)
		if i == 0 || minted[i].Before(first) {
			first = minted[i]
		}
		if minted[i].After(last) {
			last = minted[i]
		}
	}
	rows, err := t.Query(ctx, served, connections, ids, minted, first, last)
	if err != nil {
		return nil, fmt.Errorf("read %d decisions: %w", len(keys), err)
	}
	found := make(map[record.DecisionKey]record.Served, len(keys))
	var connection, id string
	var items, engineIDs []byte
	if _, err := pgx.ForEachRow(rows, []any{&connection, &id, &items, &engineIDs}, func() error {
		held, err := servedFromDB(items, engineIDs)
		found[record.DecisionKey{ConnectionID: ident.ConnectionID(connection), DecisionID: ident.DecisionID(id)}] = held
		return err
	}); err != nil {
		return nil, fmt.Errorf("read %d decisions: %w", len(keys), err)
	}
	return found, nil
}

func servedFromDB(items, engineIDs []byte) (record.Served, error) {
	var list []signal.DecisionItem
	if err := json.Unmarshal(items, &list); err != nil {
		return record.Served{}, fmt.Errorf("items of a decision: %w", err)
	}
	s := record.Served{Items: make(map[ident.ItemID]struct{}, len(list))}
	if len(engineIDs) > 0 {
		s.EngineIDs = append([]byte(nil), engineIDs...)
	}
	for _, item := range list {
		s.Items[item.ItemID] = struct{}{}
	}
	return s, nil
}
