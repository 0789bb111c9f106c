package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/pressly/goose/v3"

	"storefront.internal/shared/pg"
)

// functions returns the migrations that are not files.
func functions() []*goose.Migration {
	return []*goose.Migration{
		goose.NewGoMigration(31, &goose.GoFunc{RunDB: indexQuarantine}, nil),
	}
}

// indexQuarantine indexes what is in the quarantine by its entity, and marks the entities.
func indexQuarantine(ctx context.Context, db *sql.DB) error {
	err := partitionedIndex{
		schema: "control", table: "observations", name: "quarantined_entity",
		columns: "connection_id, entity, external_id", where: "state = 'quarantined'",
	}.create(ctx, db)
	if err == nil {
		_, err = db.ExecContext(ctx, markQuarantined)
	}
	return err
}

// Entities that have a mark keep it.
const markQuarantined = `
INSERT INTO control.entities AS e (connection_id, entity, external_id, quarantined_id, quarantined_revision)
SELECT connection_id, entity, external_id, max(observation_id), max(revision)
FROM control.observations
WHERE state = 'quarantined' AND external_id <> ''
GROUP BY connection_id, entity, external_id
ON CONFLICT (connection_id, entity, external_id) DO UPDATE
SET quarantined_id = excluded.quarantined_id, quarantined_revision = excluded.quarantined_revision
WHERE e.quarantined_id = ''`

// partitionedIndex is an index of a partitioned table. CREATE INDEX CONCURRENTLY knows no partitioned tables,
// so the index of the table is created empty, and those of its partitions concurrently, one by one.
type partitionedIndex struct {
	schema  string
	table   string
	name    string // what the names of the indexes end with, after that of the table or partition
	columns string
	where   string
}

// create creates what is missing of the index. Writers do not wait for it, and it may be interrupted and
// called again. New partitions have the index from the beginning.
func (i partitionedIndex) create(ctx context.Context, db *sql.DB) error {
	parent := fmt.Sprintf("CREATE INDEX IF NOT EXISTS %s_%s ON ONLY %s.%[1]s (%[4]s) WHERE %s",
		i.table, i.name, i.schema, i.columns, i.where)
	if _, err := db.ExecContext(ctx, parent); err != nil {
		return err
	}
	for {
		var partition string
		err := db.QueryRowContext(ctx, partitionWithoutIndex, i.schema+"."+i.table,
			fmt.Sprintf("%s.%s_%s", i.schema, i.table, i.name)).Scan(&partition)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err == nil {
			err = i.createOn(ctx, db, partition)
		}
		if err != nil && pg.SQLState(err) != pg.UndefinedTable { // the partition was dropped
			return err
		}
	}
}

const partitionWithoutIndex = `
SELECT p.relname
FROM pg_inherits t
JOIN pg_class p ON p.oid = t.inhrelid
WHERE t.inhparent = $1::regclass AND NOT EXISTS (
    SELECT FROM pg_index x
    JOIN pg_inherits i ON i.inhrelid = x.indexrelid
    WHERE x.indrelid = p.oid AND i.inhparent = $2::regclass)
ORDER BY p.relname
LIMIT 1`

// createOn creates the index of a partition. What an interrupted build left is dropped. CONCURRENTLY waits
// for transactions, and nobody waits behind it, so these waits have no limit.
func (i partitionedIndex) createOn(ctx context.Context, db *sql.DB, partition string) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	index := pgx.Identifier{partition + "_" + i.name}.Sanitize()
	for _, statement := range []string{
		"SET lock_timeout = 0",
		fmt.Sprintf("DROP INDEX CONCURRENTLY IF EXISTS %s.%s", i.schema, index),
		fmt.Sprintf("CREATE INDEX CONCURRENTLY %s ON %s.%s (%s) WHERE %s", index, i.schema,
			pgx.Identifier{partition}.Sanitize(), i.columns, i.where),
		"RESET lock_timeout",
		fmt.Sprintf("ALTER INDEX %s.%s_%s ATTACH PARTITION %[1]s.%[4]s", i.schema, i.table, i.name, index),
	} {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}
