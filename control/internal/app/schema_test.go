package app

import (
	"context"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"storefront.internal/control/internal/jobs"
	"storefront.internal/shared/pg"
	"storefront.internal/shared/testkit"
)

// emptyDatabase creates a database without our schemas.
func emptyDatabase(t *testing.T) string {
	t.Helper()
	base := testkit.Postgres(t)
	name := testkit.Name("storefront_empty_")
	admin := testkit.Pool(t, base)
	if _, err := admin.Exec(t.Context(), "CREATE DATABASE "+pgx.Identifier{name}.Sanitize()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := admin.Exec(context.Background(),
			"DROP DATABASE "+pgx.Identifier{name}.Sanitize()+" WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	i := strings.LastIndex(base, "/storefront_test_")
	rest := base[i+1:]
	if q := strings.IndexByte(rest, '?'); q >= 0 {
		return base[:i+1] + name + rest[q:]
	}
	return base[:i+1] + name
}

func TestMigrateIsOneCommandForMany(t *testing.T) {
	t.Parallel()
	url := emptyDatabase(t)
	environ := []string{"CONTROL_DATABASE_URL=" + url, "CONTROL_LISTEN=not read"}
	run := func(args ...string) (int, string) {
		var out, errs strings.Builder
		code := Main(t.Context(), args, environ, strings.NewReader(""), &out, &errs)
		return code, out.String() + errs.String()
	}
	if code, text := run("migrate", "status"); code != exitFailed || !strings.Contains(text, "schema: 0") {
		t.Errorf("status of an empty database: %d %s", code, text)
	}
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if code, text := run("migrate", "up"); code != exitOK {
				t.Errorf("up: %d %s", code, text)
			}
		})
	}
	wg.Wait()
	if code, text := run("migrate", "status"); code != exitOK || strings.Count(text, "\n") != 2 {
		t.Errorf("status: %d %s", code, text)
	}
	if code, text := run("migrate", "up"); code != exitOK {
		t.Errorf("up again: %d %s", code, text)
	}
	if code, text := run("privacy", "list"); code != exitOK || text != "" {
		t.Errorf("privacy requests of an empty database: %d %s", code, text)
	}
	if code, text := run("privacy", "done", "whd_none"); code != exitFailed ||
		!strings.Contains(text, "no such data request") {
		t.Errorf("end of one that is not there: %d %s", code, text)
	}
	for _, command := range []string{"approve", "refuse"} {
		if code, text := run("privacy", command, "whd_none"); code != exitFailed ||
			!strings.Contains(text, "no such redaction") {
			t.Errorf("%s one that is not there: %d %s", command, code, text)
		}
	}
	if code, text := run("connection", "list"); code != exitOK || text != "" {
		t.Errorf("disabled connections of an empty database: %d %s", code, text)
	}
	for want, args := range map[string][]string{
		"no such connection is enabled":  {"connection", "disable", "con_none", "floods us"},
		"no such connection is disabled": {"connection", "enable", "con_none"},
	} {
		if code, text := run(args...); code != exitFailed || !strings.Contains(text, want) {
			t.Errorf("%v: %d %s", args, code, text)
		}
	}
	if code, _ := run("connection", "disable", "con_none"); code != exitUsage {
		t.Errorf("without a reason: %d", code)
	}
	if code, _ := run("migrate", "down"); code != exitUsage {
		t.Errorf("down: %d", code)
	}
}

// TestEveryTableIsOnThePageOfGrowth compares deploy/runbooks/growth.md with the schema: each table has a row,
// and each row a table.
func TestEveryTableIsOnThePageOfGrowth(t *testing.T) {
	t.Parallel()
	pool := testkit.Pool(t, testkit.PostgresWith(t, river, jobs.Migrate))
	rows, err := pool.Query(t.Context(), `
		SELECT n.nspname || '.' || c.relname
		FROM pg_class c
		JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition
			AND n.nspname NOT IN ('pg_catalog', 'information_schema')`)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(tables) < 30 {
		t.Fatalf("%d tables, %v", len(tables), err)
	}
	page, err := os.ReadFile("../../../deploy/runbooks/growth.md")
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	row := regexp.MustCompile("(?m)^\\| `([a-z_]+\\.[a-z_]+)` \\|")
	for _, m := range row.FindAllStringSubmatch(string(page), -1) {
		listed = append(listed, m[1])
	}
	slices.Sort(tables)
	slices.Sort(listed)
	for _, table := range tables {
		if !slices.Contains(listed, table) {
			t.Errorf("%s has no row in growth.md", table)
		}
	}
	if len(listed) != len(tables) {
		t.Errorf("growth.md lists %d tables, the schema has %d: %v", len(listed), len(tables), listed)
	}
}

func TestReadinessNeedsTheSchema(t *testing.T) {
	t.Parallel()
	superURL := testkit.Postgres(t) // without River's tables
	addr, prefix := testkit.Redis(t)
	b := startBundle(t, superURL, addr, prefix)
	if status, body := b.ready(b.app); status != 503 || !strings.Contains(body, "job schema") ||
		!strings.Contains(body, "migrate up") {
		t.Errorf("without the job schema: %d %s", status, body)
	}
	if err := jobs.Migrate(t.Context(), superURL); err != nil {
		t.Fatal(err)
	}
	if status, body := b.ready(b.app); status != 200 {
		t.Errorf("migrated: %d %s", status, body)
	}
	con, _ := b.connect("store-1")
	k := b.issue(con)
	b.eventually("jobs work although they could not start at first", func() bool {
		var done int
		b.scan(&done, `SELECT count(*) FROM control.river_job WHERE state = 'completed'`)
		return done > 0
	})
	b.exec(`DELETE FROM goose_db_version WHERE version_id = (SELECT max(version_id) FROM goose_db_version)`)
	if status, body := b.ready(b.app); status != 503 || !strings.Contains(body, "[-] schema") {
		t.Errorf("an older schema: %d %s", status, body)
	}
	// Control does not start with another keyset than the one that sealed the stored secrets.
	other := b.cfg
	other.Keyset = newBundle(t).cfg.Keyset
	a, err := New(t.Context(), other, b.app.logger)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "keyset") ||
		strings.Contains(err.Error(), k.Secret) {
		t.Errorf("another keyset: %v", err)
	}
}

func TestRolesSufficeAndNoMore(t *testing.T) {
	t.Parallel()
	superURL := testkit.PostgresWith(t, river, jobs.Migrate)
	f := func(role string, allowed bool, statements ...string) {
		t.Helper()
		pool := testkit.Pool(t, testkit.PostgresAs(t, superURL, role))
		for _, sql := range statements {
			_, err := pool.Exec(t.Context(), "EXPLAIN "+sql)
			if denied := pg.SQLState(err) == "42501"; denied == allowed || (allowed && err != nil) {
				t.Errorf("%s: %s: %v", role, sql, err)
			}
		}
	}
	f("storefront_edge", true,
		`SELECT k.api_key_id, k.connection_id, c.store_id, k.scopes FROM control.api_keys k JOIN control.connections c USING (connection_id) WHERE k.digest = '\x00' AND k.revoked_at IS NULL`,
		`SELECT version FROM control.key_version`, `SELECT version, token, digest FROM control.key_changes`,
		`SELECT provider, state FROM control.connections`)
	f("storefront_edge", true,
		`SELECT connection_id, item_id, refresh_revision, body, sellable, refreshed_at FROM control.aggregates`)
	f("storefront_edge", false,
		`SELECT document FROM control.aggregates`, `SELECT 1 FROM control.observations`,
		`SELECT 1 FROM control.entities`, `SELECT 1 FROM control.taxonomy_nodes`,
		`SELECT 1 FROM control.item_taxonomy`, `UPDATE control.aggregates SET sellable = true`,
		`SELECT control.ensure_partitions(7)`,
		`SELECT sealed_secret FROM control.api_keys`, `SELECT external_store_id FROM control.connections`,
		`SELECT store_profile FROM control.connections`, `SELECT token_hmac FROM control.connector_tokens`,
		`SELECT 1 FROM control.river_job`, `UPDATE control.key_version SET version = 9`,
		`DELETE FROM control.key_changes`,
		`INSERT INTO control.api_keys (api_key_id) VALUES ('key_x')`,
		`UPDATE control.api_keys SET revoked_at = NULL`, `DELETE FROM control.api_keys`)
	f("storefront_edge", false,
		`SELECT 1 FROM control.installations`, `SELECT 1 FROM control.credentials`,
		`SELECT 1 FROM control.endpoints`,
		`SELECT 1 FROM control.webhook_deliveries`, `SELECT 1 FROM control.bootstrap_runs`)
	f("storefront_relay", false,
		`SELECT 1 FROM control.installations`, `SELECT 1 FROM control.credentials`,
		`SELECT 1 FROM control.endpoints`,
		`SELECT 1 FROM control.webhook_deliveries`, `SELECT 1 FROM control.bootstrap_runs`,
		`SELECT 1 FROM control.observations`, `SELECT 1 FROM control.aggregates`,
		`SELECT 1 FROM control.entities`,
		`SELECT 1 FROM control.api_keys`, `SELECT 1 FROM control.connections`,
		`SELECT 1 FROM control.connector_tokens`, `SELECT 1 FROM control.river_job`)
	f("storefront_control", true, `DELETE FROM control.credentials`)
	f("storefront_control", false,
		`DELETE FROM control.installations`, `UPDATE control.installations SET connection_id = 'con_x'`,
		`UPDATE control.credentials SET connection_id = 'con_x'`,
		`DELETE FROM control.endpoints`, `UPDATE control.endpoints SET connection_id = 'con_x'`,
		`UPDATE control.endpoints SET topic = 'x'`,
		`DELETE FROM control.webhook_deliveries`,
		`UPDATE control.webhook_deliveries SET connection_id = 'con_x'`, `DELETE FROM control.bootstrap_runs`)
	f("storefront_control", true,
		`DELETE FROM control.river_job`,
		`INSERT INTO control.river_leader (elected_at, expires_at, leader_id) VALUES (now(), now(), 'x')`,
		`UPDATE control.river_queue SET updated_at = now()`, `DELETE FROM control.river_notification`,
		`SELECT version FROM control.river_migration`)
	f("storefront_control", false,
		`DELETE FROM control.observations`, `DELETE FROM control.entities`, `DELETE FROM control.aggregates`,
		`DELETE FROM control.taxonomy_nodes`,
		`UPDATE control.observations SET connection_id = 'con_x'`,
		`UPDATE control.observations SET content_digest = ''`,
		`UPDATE control.aggregates SET item_id = 'itm_x'`, `UPDATE control.entities SET external_id = 'x'`,
		`DELETE FROM control.api_keys`, `DELETE FROM control.connections`,
		`DELETE FROM control.connector_tokens`, `DELETE FROM control.key_version`,
		`INSERT INTO control.key_version (version) VALUES (1)`, `UPDATE control.api_keys SET scopes = '{}'`,
		`UPDATE control.api_keys SET digest = ''`, `UPDATE control.key_changes SET version = 0`,
		`UPDATE control.api_keys SET connection_id = 'con_x'`,
		`UPDATE control.connections SET store_id = 'str_x'`,
		`SELECT 1 FROM relay.signals`, `SELECT 1 FROM relay.audit`, `DELETE FROM relay.signals`,
		`UPDATE delivery.entries SET attempts = 0`,
		`DELETE FROM delivery.entries`, `SELECT body FROM delivery.entries`,
		`UPDATE control.river_migration SET version = 1`)
	pool := testkit.Pool(t, testkit.PostgresAs(t, superURL, "storefront_control"))
	for _, sql := range []string{`TRUNCATE control.api_keys`, `DROP TABLE control.api_keys`,
		`ALTER TABLE control.api_keys ADD x int`, `CREATE TABLE control.x (n int)`} {
		if _, err := pool.Exec(t.Context(), sql); pg.SQLState(err) != "42501" {
			t.Errorf("%s: %v", sql, err)
		}
	}
}

// TestTheArchiveIsOnlyTakenAway: control can redact the archive, and cannot replace its content.
func TestTheArchiveIsOnlyTakenAway(t *testing.T) {
	t.Parallel()
	superURL := testkit.PostgresWith(t, river, jobs.Migrate)
	super, control := testkit.Pool(t, superURL), testkit.Pool(t,
		testkit.PostgresAs(t, superURL, "storefront_control"))
	for _, entity := range []string{"product", "order"} {
		if _, err := super.Exec(t.Context(), `
INSERT INTO control.observations (observation_id, minted_at, connection_id, entity, external_id, revision, operation, state, content_digest, document, raw)
VALUES ($1, now(), 'con_x', $1, 'x', 1, 'upsert', 'accepted', 'sha256:', 'document', 'raw')`, entity); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		sql  string
		free bool
	}{
		{`UPDATE control.observations SET raw = 'other'`, false},
		{`UPDATE control.observations SET document = 'other', redacted_at = now() WHERE entity = 'product'`,
			false},
		{`UPDATE control.observations SET document = 'other' WHERE entity = 'order'`, false},
		{`UPDATE control.observations SET document = 'without buyer', raw = '', redacted_at = now() WHERE entity = 'order'`, true},
		{`UPDATE control.observations SET raw = ''`, true},
	} {
		_, err := control.Exec(t.Context(), c.sql)
		if denied := pg.SQLState(err) == "42501"; denied == c.free || (c.free && err != nil) {
			t.Errorf("%s: %v", c.sql, err)
		}
	}
}
