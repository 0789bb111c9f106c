package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"storefront.internal/control/internal/stats"
	"storefront.internal/shared/pg"
)

const (
	selectTableSizes = `
SELECT n.nspname || '.' || root.relname, sum(pg_total_relation_size(c.oid))::bigint,
    coalesce(sum(s.n_live_tup), 0)::bigint, coalesce(sum(s.n_dead_tup), 0)::bigint
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_class root ON root.oid = coalesce(pg_partition_root(c.oid), c.oid)
LEFT JOIN pg_stat_user_tables s ON s.relid = c.oid
WHERE c.relkind = 'r' AND n.nspname IN ('control', 'delivery', 'relay')
GROUP BY 1`

	// VACUUM ignores the snapshots of other VACUUMs. Without special rights a role sees the ids of others'
	// transactions, and neither their times nor their statements.
	selectHorizon = `
SELECT pg_database_size(current_database()), pg_snapshot_xmax(pg_current_snapshot())::text::bigint,
    greatest(
        (SELECT max(greatest(age(a.backend_xmin), age(a.backend_xid)))
         FROM pg_stat_activity a
         WHERE a.pid <> pg_backend_pid() AND (a.datname = current_database() OR a.datname IS NULL)
             AND NOT EXISTS (SELECT FROM pg_stat_progress_vacuum v WHERE v.pid = a.pid)),
        (SELECT max(age(xmin)) FROM pg_replication_slots),
        (SELECT max(age(transaction)) FROM pg_prepared_xacts WHERE database = current_database()),
        0)`
)

// Sizes implements stats.Store.
func (s *Store) Sizes(ctx context.Context) (f stats.Sizes, err error) {
	f.Tables = map[string]stats.Table{}
	err = pg.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		var age int64
		if err := tx.QueryRow(ctx, selectHorizon).Scan(&f.Database, &f.NextXID, &age); err != nil {
			return err
		}
		f.OldestXID = f.NextXID - max(age, 0)
		var name string
		var t stats.Table
		rows, _ := tx.Query(ctx, selectTableSizes)
		_, err := pgx.ForEachRow(rows, []any{&name, &t.Bytes, &t.Rows, &t.DeadRows}, func() error {
			f.Tables[name] = t
			return nil
		})
		return err
	})
	return f, Translate("read sizes", err)
}
