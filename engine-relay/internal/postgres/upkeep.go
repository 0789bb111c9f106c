package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"storefront.internal/engine-relay/internal/sink"
	"storefront.internal/engine-relay/internal/upkeep"
	"storefront.internal/shared/pg"
)

// EnsurePartitions implements upkeep.Store.
func (s *Store) EnsurePartitions(ctx context.Context, days int) (int, error) {
	return s.count(ctx, "ensure partitions", `SELECT relay.ensure_partitions($1)`, days)
}

// DropPartition implements upkeep.Store.
func (s *Store) DropPartition(ctx context.Context, t upkeep.Table,
	before time.Time) (dropped bool, err error) {
	err = s.pool.QueryRow(ctx, `SELECT relay.drop_partition($1, $2::date)`, string(t),
		before.UTC().Format(time.DateOnly)).Scan(&dropped)
	if err != nil {
		return false, fmt.Errorf("drop a partition of %s: %w", t, err)
	}
	return dropped, nil
}

// purgeBlocks is a page of relay.cart_lines: 4 MiB, some 20,000 lines.
const purgeBlocks = 512

// PurgeCartLines implements upkeep.Store. A page is some blocks of the table.
func (s *Store) PurgeCartLines(ctx context.Context, before time.Time, page int64) (deleted int, next int64,
	err error) {
	var block *int64
	err = s.pool.QueryRow(ctx, `SELECT deleted, next_block FROM relay.purge_cart_lines($1, $2, $3)`,
		before, page*purgeBlocks, purgeBlocks).Scan(&deleted, &block)
	if err != nil {
		return 0, 0, fmt.Errorf("purge cart lines: %w", err)
	}
	if block == nil {
		return deleted, 0, nil
	}
	return deleted, page + 1, nil
}

const countDefaultPartitionRows = `
SELECT (SELECT count(*) FROM (SELECT stored_at FROM relay.signals_default LIMIT 1000) AS s)
     + (SELECT count(*) FROM (SELECT stored_at FROM relay.audit_default LIMIT 1000) AS a)`

// DefaultPartitionRows implements upkeep.Store. It counts up to 1,000 rows of each table.
func (s *Store) DefaultPartitionRows(ctx context.Context) (int, error) {
	return s.count(ctx, "count rows of default partitions", countDefaultPartitionRows)
}

// Parked implements upkeep.Store. It counts up to 10,000 records.
func (s *Store) Parked(ctx context.Context) (int, error) {
	return s.count(ctx, "count parked records",
		`SELECT count(*) FROM (
			SELECT FROM relay.parked WHERE replayed_at IS NULL AND dropped_at IS NULL LIMIT 10000) AS p`)
}

func (s *Store) count(ctx context.Context, what, sql string, args ...any) (n int, err error) {
	if err := s.pool.QueryRow(ctx, sql, args...).Scan(&n); err != nil {
		return 0, fmt.Errorf("%s: %w", what, err)
	}
	return n, nil
}

const (
	selectUnflagged = `
SELECT DISTINCT connection_id, decision_id
FROM relay.signals
WHERE foreign_item IS NULL AND stored_at > now() - interval '10 minutes'`

	// The keys carry the instant in their ids, and the bounds leave out the partitions without a key.
	backfillForeignItems = `
UPDATE relay.signals AS s
SET foreign_item = NOT EXISTS (
    SELECT FROM json_array_elements(d.items) AS i WHERE i ->> 'item_id' = s.item_id)
FROM unnest($1::text[], $2::text[], $3::timestamptz[]) AS k (connection_id, decision_id, minted_at)
JOIN relay.decisions AS d USING (connection_id, decision_id, minted_at)
WHERE s.connection_id = k.connection_id AND s.decision_id = k.decision_id AND s.foreign_item IS NULL
    AND s.stored_at > now() - interval '10 minutes' AND d.minted_at BETWEEN $4 AND $5`
)

// BackfillForeignItems implements upkeep.Store. One relay does it at a time. It never updates the same rows
// as a sink, since it sees only committed Decisions and a sink flags signals only for Decisions of its own
// transaction.
func (s *Store) BackfillForeignItems(ctx context.Context) (int, error) {
	flagged := 0
	err := pg.InTx(ctx, pg.CustomPlans(s.pool), func(t pgx.Tx) error {
		var locked bool
		err := t.QueryRow(ctx,
			`SELECT pg_try_advisory_xact_lock($1, $2)`, pg.LockSpace, pg.LockForeignItemsMarked).Scan(&locked)
		if err != nil || !locked {
			return err
		}
		rows, _ := t.Query(ctx, selectUnflagged)
		keys, err := pgx.CollectRows(rows, pgx.RowToStructByPos[sink.DecisionKey])
		if err != nil || len(keys) == 0 {
			return err
		}
		n := len(keys)
		minted := pg.Column(n, func(i int) time.Time { return mintedAt(keys[i].DecisionID) })
		tag, err := t.Exec(ctx, backfillForeignItems,
			pg.Column(n, func(i int) string { return string(keys[i].ConnectionID) }),
			pg.Column(n, func(i int) string { return string(keys[i].DecisionID) }),
			minted, slices.MinFunc(minted, time.Time.Compare), slices.MaxFunc(minted, time.Time.Compare))
		flagged = int(tag.RowsAffected())
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("flag foreign items: %w", err)
	}
	return flagged, nil
}
