package seal_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"storefront.internal/control/internal/postgres"
	"storefront.internal/control/internal/seal"
	"storefront.internal/shared/testkit"
)

// secrets is the number of credentials and of keys: more than one batch.
const secrets = 230

func parse(t *testing.T, keys []byte, err error) *seal.Sealer {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	s, err := seal.Parse(keys)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// fill stores connections with a credential and a key each, sealed by s.
func fill(t *testing.T, db *pgxpool.Pool, s *seal.Sealer) {
	t.Helper()
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := db.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	for i := range secrets {
		con, key := fmt.Sprintf("con_%d", i), fmt.Sprintf("key_%d", i)
		sealed := func(at seal.Binding) []byte {
			out, err := s.Seal([]byte("canary-"+at.Row), at)
			if err != nil {
				t.Fatal(err)
			}
			return out
		}
		exec(`INSERT INTO control.connections (connection_id, store_id, provider, external_store_id) VALUES ($1, $2, 'stub', $1)`, con, fmt.Sprintf("str_%d", i))
		exec(`INSERT INTO control.credentials (connection_id, sealed, updated_at) VALUES ($1, $2, '2026-01-01')`, con,
			sealed(seal.Binding{Table: "credentials", Column: "sealed", Row: con, Connection: con}))
		exec(`INSERT INTO control.api_keys (api_key_id, connection_id, digest, sealed_secret, scopes) VALUES ($1, $2, sha256($1::text::bytea), $3, '{catalog:read}')`,
			key, con, sealed(seal.Binding{Table: "api_keys", Column: "sealed_secret", Row: key,
				Connection: con}))
	}
	exec(`INSERT INTO control.api_keys (api_key_id, connection_id, digest, scopes) VALUES ('key_digest', 'con_0', sha256('x'), '{catalog:read}')`)
}

func TestEverythingIsSealedAnewButWhatDoesNotOpen(t *testing.T) {
	t.Parallel()
	url := testkit.Postgres(t)
	db, store := testkit.Pool(t, url), postgres.NewSeals(testkit.Pool(t,
		testkit.PostgresAs(t, url, "storefront_control")))
	keys, err := seal.NewKeyset()
	old := parse(t, keys, err)
	fill(t, db, old)
	if keys, err = seal.Add(keys); err != nil {
		t.Fatal(err)
	}
	keys, err = seal.Promote(keys)
	sealer := parse(t, keys, err)
	if _, err := db.Exec(t.Context(),
		`UPDATE control.credentials SET sealed = (SELECT sealed FROM control.credentials WHERE connection_id = 'con_8') WHERE connection_id = 'con_7'`); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	registry := prometheus.NewRegistry()
	r := seal.NewResealer(store, sealer, seal.NewMetrics(registry), slog.New(slog.NewTextHandler(&log, nil)))
	for range 2 {
		if err := r.Reseal(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	retired, err := seal.Retire(keys)
	alone := parse(t, retired, err)
	for _, table := range seal.Tables() {
		all, err := store.Older(t.Context(), table, []byte("other"), "", 2*secrets)
		if err != nil || len(all) != secrets {
			t.Fatalf("%s: %d, %v", table, len(all), err)
		}
		for _, s := range all {
			clear, err := alone.Open(s.Sealed, s.Binding)
			if broken := s.Binding.Row == "con_7"; (err != nil) != broken || !broken &&
				string(clear) != "canary-"+s.Binding.Row {
				t.Errorf("%s: %v", s.Binding.Row, err)
			}
		}
		if current, older, err := store.Count(t.Context(), table, sealer.Header()); err != nil ||
			current+older != secrets || older != map[seal.Table]int64{seal.Credentials: 1}[table] {
			t.Errorf("%s: %d under the primary key, %d under older ones, %v", table, current, older, err)
		}
	}
	const want = `
# HELP storefront_control_sealed_secrets Secrets at rest, by table and the key that sealed them (primary, older), as of the last count. An older key may be retired when it sealed none.
# TYPE storefront_control_sealed_secrets gauge
storefront_control_sealed_secrets{key="older",table="api_keys"} 0
storefront_control_sealed_secrets{key="older",table="credentials"} 1
storefront_control_sealed_secrets{key="primary",table="api_keys"} 230
storefront_control_sealed_secrets{key="primary",table="credentials"} 229
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want),
		"storefront_control_sealed_secrets"); err != nil {
		t.Error(err)
	}
	var at string
	if err := db.QueryRow(t.Context(),
		`SELECT min(updated_at)::date::text || max(updated_at)::date::text FROM control.credentials`).Scan(&at); err != nil || at != "2026-01-012026-01-01" {
		t.Errorf("the time of credentials moved: %s, %v", at, err)
	}
	if !strings.Contains(log.String(), "con_7") || strings.Contains(log.String(), "canary") {
		t.Errorf("log: %s", log.String())
	}
}

func TestAReplacedSecretIsLeftAlone(t *testing.T) {
	t.Parallel()
	url := testkit.Postgres(t)
	store := postgres.NewSeals(testkit.Pool(t, testkit.PostgresAs(t, url, "storefront_control")))
	s := seal.Secret{Binding: seal.Binding{Row: "con_none"}, Sealed: []byte("x")}
	for _, table := range seal.Tables() {
		if replaced, err := store.Replace(t.Context(), table, s, []byte("y")); err != nil || replaced {
			t.Errorf("%s: %v, %v", table, replaced, err)
		}
	}
	if _, err := store.Replace(t.Context(), "connections", s, nil); err == nil {
		t.Error("a table without secrets has some")
	}
}
