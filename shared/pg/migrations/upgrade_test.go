package migrations_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"storefront.internal/shared/pg/migrations"
	"storefront.internal/shared/testkit"
)

// released is the newest migration of the release before.
const released = 11

// TestUpgradeBesideWriters migrates a filled database of the release before while its relays and controls
// write. No statement of theirs may wait for the migrations for longer than the limit. SOAK=1 fills a hundred
// times as many rows, and its limit is half a second.
func TestUpgradeBesideWriters(t *testing.T) {
	t.Parallel()
	rows, limit := 10_000, 20*time.Second
	if os.Getenv("SOAK") == "1" {
		rows, limit = 1_000_000, 500*time.Millisecond
	}
	url := testkit.PostgresEmpty(t)
	if err := migrations.UpTo(t.Context(), url, released); err != nil {
		t.Fatal(err)
	}
	pool := testkit.Pool(t, url)
	for _, sql := range filling {
		if _, err := pool.Exec(t.Context(), sql, rows); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	for name, sql := range writing {
		writers.Go(func() {
			conn, err := pool.Acquire(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Release()
			_, err = conn.Exec(t.Context(), fmt.Sprintf("SET lock_timeout = %d", limit.Milliseconds()))
			var longest time.Duration
			n := 0
			for ; err == nil && ctx.Err() == nil; n++ {
				began := time.Now()
				_, err = conn.Exec(t.Context(), sql, n)
				longest = max(longest, time.Since(began))
			}
			if err != nil {
				t.Errorf("%s: after %d statements: %v", name, n, err)
			}
			t.Logf("%s: %d statements, the longest took %s", name, n, longest)
		})
	}
	began := time.Now()
	if err := migrations.Up(t.Context(), url); err != nil {
		t.Error(err)
	}
	t.Logf("%d rows were migrated in %s", rows, time.Since(began))
	stop()
	writers.Wait()
	var valid bool
	var marked int
	if err := pool.QueryRow(t.Context(), `SELECT indisvalid, (SELECT count(*) FROM control.entities
		WHERE quarantined_id <> '') FROM pg_index
		WHERE indexrelid = 'control.observations_quarantined_entity'::regclass`).Scan(&valid, &marked); err != nil ||
		!valid || marked != rows/100 {
		t.Errorf("the index is valid: %t, %d entities are marked of %d (%v)", valid, marked, rows/100, err)
	}
}

// filling makes as many rows of each large table as $1 says, in two days and in the default partition.
var filling = []string{
	`SELECT control.ensure_partitions(2), $1::int`,
	`INSERT INTO control.connections (connection_id, provider, external_store_id, store_id)
SELECT 'con_1', 'custom', '1', 'str_1' WHERE $1::int > 0`,
	`INSERT INTO control.entities (connection_id, entity, external_id, revision, operation)
SELECT 'con_1', 'product', n, 1, 'upsert' FROM generate_series(1, $1::int) n`,
	`INSERT INTO control.observations (observation_id, minted_at, connection_id, entity, external_id, revision,
    operation, state, reason, content_digest, document, raw)
SELECT 'obs_' || n, now() - (n % 3) * interval '1 day', 'con_1', 'product', n, 1, 'upsert',
    CASE n % 100 WHEN 0 THEN 'quarantined' ELSE 'accepted' END, CASE n % 100 WHEN 0 THEN 'missing' END, 'd',
    CASE n % 100 WHEN 0 THEN NULL ELSE '{}'::bytea END, convert_to(repeat('x', 500), 'UTF8')
FROM generate_series(1, $1::int) n`,
	`INSERT INTO relay.ledger (connection_id, digest)
SELECT 'con_1', gen_random_uuid() FROM generate_series(1, $1::int) n`,
	`INSERT INTO relay.signals (connection_id, decision_id, signal_id, store_id, type, record_id, received_at,
    occurred_at, record_index, crawler)
SELECT 'con_1', 'dec_' || n, 'sig_' || n, 'str_1', 'click', gen_random_uuid(), now(), now(), 0, false
FROM generate_series(1, $1::int) n`,
	`INSERT INTO delivery.dead (connection_id, kind, id, lane, body, created_at, died_at, attempts, reason)
SELECT 'con_1', 1, n, 0, '{}', now(), now(), 1, 'refused' FROM generate_series(1, $1::int) n`,
}

// writing are statements of the release before, which run until the migrations are done.
var writing = map[string]string{
	"ledger": `INSERT INTO relay.ledger (connection_id, digest)
SELECT 'con_1', gen_random_uuid() FROM generate_series(1, 100) WHERE $1::int >= 0`,
	"signals": `INSERT INTO relay.signals (connection_id, decision_id, signal_id, store_id, type, record_id,
    received_at, occurred_at, record_index, crawler)
SELECT 'con_1', 'dec_' || n, 'more_' || n, 'str_1', 'click', gen_random_uuid(), now(), now(), 0, false
FROM generate_series($1::int * 100, $1::int * 100 + 99) n`,
	"catalog": `WITH changed AS (
    UPDATE control.entities SET revision = revision + 1
    WHERE connection_id = 'con_1' AND entity = 'product' AND external_id = ($1::int % 10000 + 1)::text)
INSERT INTO control.observations (observation_id, minted_at, connection_id, entity, external_id, revision,
    operation, state, content_digest, document, raw)
SELECT 'more_' || $1::int, now(), 'con_1', 'product', $1::int % 10000 + 1, 2, 'upsert', 'accepted', 'd',
    '{}', '{}'`,
}

// TestNoIndexHoldsUpWriters checks the files after those of the release before: an index of a table that has
// rows already is created concurrently, or by a function.
func TestNoIndexHoldsUpWriters(t *testing.T) {
	t.Parallel()
	index := regexp.MustCompile(`CREATE (?:UNIQUE )?INDEX (CONCURRENTLY )?\w+\s+ON (?:ONLY )?([\w.]+)`)
	small := []string{"relay.parked"} // rows that an operator looks at
	names, err := fs.Glob(migrations.Files(), "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := fs.ReadFile(migrations.Files(), name)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range index.FindAllStringSubmatch(string(text), -1) {
			concurrent, table := found[1] != "", found[2]
			created := strings.Contains(string(text), "CREATE TABLE "+table+" ")
			later := name > fmt.Sprintf("%05d~", released)
			if later && !concurrent && !created && !slices.Contains(small, table) {
				t.Errorf("%s: %q lets writers of %s wait", name, found[0], table)
			}
		}
	}
}
