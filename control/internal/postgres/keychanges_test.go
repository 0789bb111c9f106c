package postgres_test

import (
	"errors"
	"strings"
	"testing"

	"storefront.internal/control/internal/postgres"
)

// One changed key costs one key, however many there are: the statement reads no table of keys as a whole.
func TestAChangeOfOneKeyReadsOneKey(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	m.exec(`INSERT INTO control.api_keys (api_key_id, connection_id, digest, scopes, changed_version,
			pushed_version)
		SELECT 'key_' || n, $1, sha256(n::text::bytea), '{catalog:read}', n, n FROM generate_series(1, 10000) AS n`,
		m.from.ConnectionID)
	m.exec(`ANALYZE`)
	session, err := m.super.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer session.Release()
	if _, err := session.Exec(t.Context(), `PREPARE changes (bigint, integer) AS `+postgres.SelectChanges); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []string{"force_generic_plan", "force_custom_plan"} {
		var plan string
		_, err := session.Exec(t.Context(), `SET plan_cache_mode = `+mode)
		err = errors.Join(err, session.QueryRow(t.Context(),
			`EXPLAIN (FORMAT JSON) EXECUTE changes (9999, 501)`).Scan(&plan))
		if err != nil || !strings.Contains(plan, "api_keys_digest_key") || strings.Contains(plan, `"Hash`) {
			t.Errorf("%s: %s %v", mode, plan, err)
		}
	}
}
