package postgres

import (
	"bytes"
	"context"

	"github.com/jackc/pgx/v5"

	"storefront.internal/control/internal/observation"
	"storefront.internal/shared/catalog"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/pg"
)

// itemsPerTx is how many items one transaction recomposes.
const itemsPerTx = 500

const selectItemsOfNode = `
SELECT item_id
FROM control.item_taxonomy
WHERE connection_id = $1 AND taxonomy_id = $2 AND item_id > $3
ORDER BY item_id
LIMIT $4`

// Recompose gives the items of changed nodes bodies with the nodes' present names. It may be repeated at any
// time. An item that is linked to a node meanwhile is composed by a transaction that sees the change.
func (c *Catalog) Recompose(ctx context.Context, conn ident.ConnectionID, nodes []catalog.TaxonomyID) error {
	var items []ident.ItemID
	for _, node := range nodes {
		for after := ident.ItemID(""); ; {
			rows, err := c.pool.Query(ctx, selectItemsOfNode, conn, node, after, itemsPerTx-len(items))
			if err != nil {
				return Translate("read items of a node", err)
			}
			page, err := pgx.CollectRows(rows, pgx.RowTo[ident.ItemID])
			if err != nil {
				return Translate("read items of a node", err)
			}
			items = append(items, page...)
			if len(items) < itemsPerTx {
				break // the node's last page
			}
			after = page[len(page)-1]
			if err := c.recomposeItems(ctx, conn, items); err != nil {
				return err
			}
			items = items[:0]
		}
	}
	if len(items) == 0 {
		return nil
	}
	return c.recomposeItems(ctx, conn, items)
}

const lockBodies = `
SELECT item_id, refresh_revision, document, body, taxonomy_ids
FROM control.aggregates
WHERE connection_id = $1 AND item_id = ANY ($2::text[]) AND body IS NOT NULL
ORDER BY item_id
FOR NO KEY UPDATE`

const selectNodes = `
SELECT taxonomy_id, document
FROM control.taxonomy_nodes
WHERE connection_id = $1 AND taxonomy_id = ANY ($2::text[])`

const updateBodies = `
UPDATE control.aggregates a
SET refresh_revision = k.refresh_revision, body = k.body, refreshed_at = now()
FROM unnest($2::text[], $3::bigint[], $4::bytea[]) AS k (item_id, refresh_revision, body)
WHERE a.connection_id = $1 AND a.item_id = k.item_id`

// storedItem is an aggregate as it is stored.
type storedItem struct {
	ItemID          ident.ItemID
	RefreshRevision int64
	Document, Body  []byte
	TaxonomyIDs     []catalog.TaxonomyID
}

// recomposeItems reads the nodes after it locked the items, and does not lock the nodes: a node that changes
// later has its own job, which waits for these items.
func (c *Catalog) recomposeItems(ctx context.Context, conn ident.ConnectionID, items []ident.ItemID) error {
	err := c.inTx(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, lockBodies, conn, texts(items))
		if err != nil {
			return err
		}
		locked, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (a storedItem,
			err error) {
			err = row.Scan(&a.ItemID, &a.RefreshRevision, &a.Document, &a.Body, &a.TaxonomyIDs)
			return a, err
		})
		if err != nil {
			return err
		}
		documents, err := nodesOf(ctx, tx, conn, locked)
		if err != nil {
			return err
		}
		changed, err := recompose(locked, documents)
		if err != nil || len(changed) == 0 {
			return err
		}
		return c.writeBodies(ctx, tx, conn, changed)
	})
	return Translate("recompose items", err)
}

func nodesOf(ctx context.Context, tx pgx.Tx, conn ident.ConnectionID,
	items []storedItem) (map[catalog.TaxonomyID][]byte, error) {
	documents := make(map[catalog.TaxonomyID][]byte)
	for i := range items {
		for _, id := range items[i].TaxonomyIDs {
			documents[id] = nil
		}
	}
	ids := make([]string, 0, len(documents))
	for id := range documents {
		ids = append(ids, string(id))
	}
	rows, err := tx.Query(ctx, selectNodes, conn, ids)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	return documents, scanNodes(rows, documents)
}

// recompose returns the items whose bytes change, with their next refresh_revision.
func recompose(items []storedItem,
	documents map[catalog.TaxonomyID][]byte) ([]storedItem, error) {
	categories, err := observation.Categories(documents)
	if err != nil {
		return nil, err
	}
	var changed []storedItem
	for _, a := range items {
		document, err := catalog.Decode(catalog.Product, a.Document)
		if err != nil {
			return nil, err
		}
		product, ok := document.(*catalog.CatalogAggregate)
		if !ok || bytes.Equal(catalog.Compose(product, a.RefreshRevision, categories), a.Body) {
			continue
		}
		a.RefreshRevision++
		a.Body = catalog.Compose(product, a.RefreshRevision, categories)
		changed = append(changed, a)
	}
	return changed, nil
}

func (c *Catalog) writeBodies(ctx context.Context, tx pgx.Tx, conn ident.ConnectionID,
	changed []storedItem) error {
	n := len(changed)
	ids := pg.Column(n, func(i int) ident.ItemID { return changed[i].ItemID })
	revisions := pg.Column(n, func(i int) int64 { return changed[i].RefreshRevision })
	bodies := pg.Column(n, func(i int) []byte { return changed[i].Body })
	if _, err := tx.Exec(ctx, updateBodies, conn, texts(ids), revisions, bodies); err != nil {
		return err
	}
	return c.jobs.EnqueueItemPush(ctx, tx, conn, ids)
}

const selectServed = `
SELECT item_id, refresh_revision, body
FROM control.aggregates
WHERE connection_id = $1 AND item_id = ANY ($2::text[])`

// ServedItems implements observation.ItemStore.
func (c *Catalog) ServedItems(ctx context.Context, conn ident.ConnectionID,
	items []ident.ItemID) ([]observation.ServedItem, error) {
	return list(ctx, c.pool, "read items", pgx.RowToStructByPos[observation.ServedItem], selectServed,
		conn, texts(items))
}
