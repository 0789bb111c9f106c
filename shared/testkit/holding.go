package testkit

import (
	"encoding/hex"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// TablesContaining returns the tables with a row that contains the text, as text or as bytes. The pool must
// be able to read all tables.
func TablesContaining(t testing.TB, pool *pgxpool.Pool, text string) (tables []string) {
	t.Helper()
	rows, err := pool.Query(t.Context(), `
		SELECT format('%I.%I', n.nspname, c.relname)
		FROM pg_class c
		JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relkind = 'r' AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')
		ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(all) == 0 {
		t.Fatalf("%d tables, %v", len(all), err)
	}
	for _, table := range all {
		var holds bool
		// The text form of a row shows bytes in hexadecimal digits.
		query := `SELECT EXISTS (SELECT FROM ` + table +
			` AS r WHERE position($1 IN r::text) > 0 OR position($2 IN r::text) > 0)`
		if err := pool.QueryRow(t.Context(), query, text,
			hex.EncodeToString([]byte(text))).Scan(&holds); err != nil {
			t.Fatalf("%s: %v", table, err)
		}
		if holds {
			tables = append(tables, table)
		}
	}
	return tables
}
