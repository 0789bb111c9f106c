package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"storefront.internal/control/internal/observation"
	"storefront.internal/shared/catalog"
	"storefront.internal/shared/ident"
)

// insertMissingEntities inserts a row to lock for each entity that was never delivered.
const insertMissingEntities = `
INSERT INTO control.entities (connection_id, entity, external_id)
SELECT $1, entity, external_id
FROM unnest($2::text[], $3::text[]) AS k (entity, external_id)
ORDER BY entity COLLATE "C", external_id COLLATE "C"
ON CONFLICT DO NOTHING`

const lockEntityRows = `
SELECT e.entity, e.external_id, e.revision, e.operation, e.content_digest, e.observation_id, e.fetch_seq,
    e.stored_seq, e.redacted_at IS NOT NULL, e.quarantined_id, e.quarantined_digest, e.quarantined_revision
FROM control.entities e
JOIN unnest($2::text[], $3::text[]) AS k (entity, external_id)
    ON e.entity = k.entity AND e.external_id = k.external_id
WHERE e.connection_id = $1
ORDER BY e.entity, e.external_id
FOR NO KEY UPDATE OF e`

// lockEntities locks entities and returns what is applied of them.
func lockEntities(ctx context.Context, tx pgx.Tx, c ident.ConnectionID,
	keys []observation.Key) (map[observation.Key]observation.Applied, error) {
	applied := make(map[observation.Key]observation.Applied, len(keys))
	if len(keys) == 0 {
		return applied, nil
	}
	entities, externals := keyColumns(keys)
	b := &pgx.Batch{}
	b.Queue(insertMissingEntities, c, entities, externals)
	b.Queue(lockEntityRows, c, entities, externals).Query(func(rows pgx.Rows) error {
		var k observation.Key
		var a observation.Applied
		_, err := pgx.ForEachRow(rows, []any{&k.Entity, &k.ExternalID, &a.Revision, &a.Operation, &a.Digest,
			&a.ObservationID, &a.FetchSeq, &a.StoredSeq, &a.Redacted, &a.QuarantinedID,
			&a.QuarantinedDigest, &a.QuarantinedRevision}, func() error {
			applied[k] = a
			return nil
		})
		return err
	})
	return applied, tx.SendBatch(ctx, b).Close()
}

func keyColumns(keys []observation.Key) (entities, externals []string) {
	for _, k := range keys {
		entities, externals = append(entities, string(k.Entity)), append(externals, k.ExternalID)
	}
	return entities, externals
}

const insertMissingNodes = `
INSERT INTO control.taxonomy_nodes (connection_id, taxonomy_id)
SELECT $1, id
FROM unnest($2::text[]) AS k (id)
ORDER BY id COLLATE "C"
ON CONFLICT DO NOTHING`

// A transaction that changes a node locks all of its nodes exclusively: one statement cannot mix both lock
// modes and keep the order of the keys.
const (
	lockNodeRows = `
SELECT taxonomy_id, document
FROM control.taxonomy_nodes
WHERE connection_id = $1 AND taxonomy_id = ANY ($2::text[])
ORDER BY taxonomy_id
`
	lockNodesShared    = lockNodeRows + `FOR SHARE`
	lockNodesExclusive = lockNodeRows + `FOR NO KEY UPDATE`
)

// selectNodesInUse runs after the lock. A transaction that links an item to a node either has committed, so
// its link is visible here, or waits for the lock and then sees the changed node.
const selectNodesInUse = `
SELECT k.id
FROM unnest($2::text[]) AS k (id)
WHERE EXISTS (SELECT FROM control.item_taxonomy t WHERE t.connection_id = $1 AND t.taxonomy_id = k.id)`

const lockItemRows = `
SELECT item_id, refresh_revision, taxonomy_ids
FROM control.aggregates
WHERE connection_id = $1 AND item_id = ANY ($2::text[])
ORDER BY item_id
FOR NO KEY UPDATE`

// lockPlan locks the nodes and then the items of a plan. When a node changes, it returns the nodes that items
// use.
func lockPlan(ctx context.Context, tx pgx.Tx, c ident.ConnectionID,
	p *observation.Plan) (l observation.Locked, nodesInUse []catalog.TaxonomyID, err error) {
	l.Nodes = make(map[catalog.TaxonomyID][]byte)
	l.Items = make(map[ident.ItemID]observation.LockedItem)
	b := &pgx.Batch{}
	if nodes := texts(p.Nodes()); len(nodes) > 0 {
		lock := lockNodesShared
		if p.ChangesTaxonomy() {
			lock = lockNodesExclusive
		}
		b.Queue(insertMissingNodes, c, nodes)
		b.Queue(lock, c, nodes).Query(func(rows pgx.Rows) error { return scanNodes(rows, l.Nodes) })
		if p.ChangesTaxonomy() {
			b.Queue(selectNodesInUse, c, nodes).Query(func(rows pgx.Rows) error {
				nodesInUse, err = pgx.CollectRows(rows, pgx.RowTo[catalog.TaxonomyID])
				return err
			})
		}
	}
	if items := texts(p.Items()); len(items) > 0 {
		b.Queue(lockItemRows, c, items).Query(func(rows pgx.Rows) error { return scanItems(rows, l.Items) })
	}
	return l, nodesInUse, tx.SendBatch(ctx, b).Close()
}

func scanNodes(rows pgx.Rows, into map[catalog.TaxonomyID][]byte) error {
	for rows.Next() {
		var id catalog.TaxonomyID
		var document []byte
		if err := rows.Scan(&id, &document); err != nil {
			return err
		}
		into[id] = document
	}
	return rows.Err()
}

func scanItems(rows pgx.Rows, into map[ident.ItemID]observation.LockedItem) error {
	for rows.Next() {
		var id ident.ItemID
		var item observation.LockedItem
		if err := rows.Scan(&id, &item.RefreshRevision, &item.TaxonomyIDs); err != nil {
			return err
		}
		into[id] = item
	}
	return rows.Err()
}

// texts converts identifiers to the type that the driver sends as text[].
func texts[T ~string](ids []T) []string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = string(id)
	}
	return out
}
