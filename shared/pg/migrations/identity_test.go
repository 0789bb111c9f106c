package migrations_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"storefront.internal/shared/testkit"
)

// TestEveryTableCanBeReplicated: PostgreSQL refuses changes of a published table whose rows it cannot name to
// a subscriber, as of an upgrade by logical replication. A partition does not inherit what names its rows.
func TestEveryTableCanBeReplicated(t *testing.T) {
	t.Parallel()
	pool := testkit.Pool(t, testkit.Postgres(t))
	const withoutIdentity = `
SELECT c.oid::regclass::text
FROM pg_class c
WHERE c.relkind IN ('r', 'p') AND c.relnamespace IN ('control'::regnamespace, 'relay'::regnamespace,
        'delivery'::regnamespace)
    AND NOT (c.relreplident = 'f' OR c.relreplident = 'd'
        AND EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary))
ORDER BY 1`
	rows, err := pool.Query(t.Context(), withoutIdentity)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(all) > 0 {
		t.Errorf("tables whose rows cannot be named: %q, %v", all, err)
	}
	for _, sql := range []string{
		`SELECT relay.ensure_partitions(60)`, // makes partitions beside those of the migrations
		`CREATE PUBLICATION everything FOR ALL TABLES`,
		`INSERT INTO relay.signals (connection_id, decision_id, signal_id, store_id, type, record_id, received_at,
			occurred_at, record_index, crawler, stored_at)
		 SELECT 'con', 'dec', 'sig', 'str', 'click', gen_random_uuid(), now(), now(), 0, false, at
		 FROM unnest(ARRAY[now(), now() + interval '59 days', now() + interval '99 days']) AS at`,
		`UPDATE relay.signals SET foreign_item = true`,
		`INSERT INTO relay.audit (connection_id, record_id, received_at, crawler, ip, user_agent, accept_language,
			origin, referer, stored_at)
		 SELECT 'con', gen_random_uuid(), now(), false, 'ip', '', '', '', '', at
		 FROM unnest(ARRAY[now(), now() + interval '59 days', now() + interval '99 days']) AS at`,
		`SELECT relay.blank_audit('con', array_agg(record_id), '-infinity', 'infinity') FROM relay.audit`,
		`DELETE FROM relay.signals`, `DELETE FROM relay.audit`,
	} {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Errorf("%s: %v", sql, err)
		}
	}
}
