package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"storefront.internal/edge/internal/itemread"
	"storefront.internal/edge/internal/recommend"
	"storefront.internal/shared/ident"
)

// Items implements itemread.Store and recommend.SellableStore. Its callers and its pool bound the look-ups in
// flight. The pool is its own, so that items and keys do not wait for each other.
type Items struct{ pool *pgxpool.Pool }

var (
	_ itemread.Store          = (*Items)(nil)
	_ recommend.SellableStore = (*Items)(nil)
)

// NewItems returns the reader of the catalog.
func NewItems(pool *pgxpool.Pool) *Items { return &Items{pool: pool} }

// Item implements itemread.Store.
func (i *Items) Item(ctx context.Context, k itemread.Key, held int64) (itemread.Version, bool, error) {
	const query = `
		SELECT refresh_revision, CASE WHEN refresh_revision <> $3 THEN body END
		FROM control.aggregates WHERE connection_id = $1 AND item_id = $2`
	var v itemread.Version
	err := i.pool.QueryRow(ctx, query, k.Connection, k.Item, held).Scan(&v.Revision, &v.Body)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return itemread.Version{}, false, nil
	case err != nil:
		return itemread.Version{}, false, fmt.Errorf("read item: %w", err)
	}
	return v, true, nil
}

// Exist implements itemread.Store: one query for all items.
func (i *Items) Exist(ctx context.Context, c ident.ConnectionID, items []ident.ItemID) ([]bool, error) {
	const query = `
		SELECT item_id FROM control.aggregates
		WHERE connection_id = $1 AND item_id = ANY($2::text[]) AND body IS NOT NULL`
	found, err := i.list(ctx, query, c, items)
	if err != nil {
		return nil, err
	}
	has := make(map[ident.ItemID]bool, len(found))
	for _, item := range found {
		has[item] = true
	}
	exist := make([]bool, len(items))
	for n, item := range items {
		exist[n] = has[item]
	}
	return exist, nil
}

// Sellable implements recommend.SellableStore.
func (i *Items) Sellable(ctx context.Context, c ident.ConnectionID, most int) ([]ident.ItemID, error) {
	const query = `
		SELECT item_id FROM control.aggregates WHERE connection_id = $1 AND sellable
		ORDER BY refreshed_at DESC, item_id LIMIT $2`
	return i.list(ctx, query, c, most)
}

func (i *Items) list(ctx context.Context, query string, args ...any) ([]ident.ItemID, error) {
	rows, err := i.pool.Query(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("list items: %w", err)
	}
	items, err := pgx.CollectRows(rows, pgx.RowTo[ident.ItemID])
	if err != nil {
		return nil, fmt.Errorf("list items: %w", err)
	}
	return items, nil
}
