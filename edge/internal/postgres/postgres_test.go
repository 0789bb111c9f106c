package postgres

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/semaphore"

	"storefront.internal/edge/internal/access"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/signal"
	"storefront.internal/shared/storekey"
	"storefront.internal/shared/testkit"
)

// open returns pools of the owner and of the edge's role.
func open(t *testing.T) (owner, edge *pgxpool.Pool) {
	t.Helper()
	url := testkit.Postgres(t)
	return testkit.Pool(t, url), testkit.Pool(t, testkit.PostgresAs(t, url, "storefront_edge"))
}

func exec(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	owner, edge := open(t)
	keys := NewKeys(edge, edge)
	live, gone := storekey.Digest([]byte("live")), storekey.Digest([]byte("gone"))
	exec(t, owner, `INSERT INTO control.connections (connection_id, store_id, provider, external_store_id) `+
		`VALUES ('con_1', 'str_1', 'custom', '1')`)
	const insert = `INSERT INTO control.api_keys (api_key_id, connection_id, digest, scopes, revoked_at) ` +
		`VALUES ($1, 'con_1', $2, '{catalog:read,signals:write}', $3)`
	exec(t, owner, insert, "key_live", live[:], nil)
	exec(t, owner, insert, "key_gone", gone[:], time.Now())
	g, found, err := keys.Grant(t.Context(), live)
	if err != nil || !found || g.KeyID != "key_live" || g.ConnectionID != "con_1" || g.StoreID != "str_1" ||
		!slices.Equal(g.Scopes, []storekey.Scope{storekey.CatalogRead, storekey.SignalsWrite}) {
		t.Errorf("%+v, %t, %v", g, found, err)
	}
	for _, d := range [][32]byte{gone, storekey.Digest([]byte("never"))} {
		if g, found, err := keys.Grant(t.Context(), d); err != nil || found {
			t.Errorf("%+v, %t, %v", g, found, err)
		}
	}
}

func TestKeyChanges(t *testing.T) {
	t.Parallel()
	owner, edge := open(t)
	keys := NewKeys(edge, edge)
	read := func(since storekey.Change, known bool, version int64, changes ...int64) []storekey.Change {
		t.Helper()
		log, err := keys.Changes(t.Context(), since, known)
		got := make([]int64, len(log.Changes))
		for i, c := range log.Changes {
			got[i] = c.Version
		}
		if err != nil || log.Version != version || !slices.Equal(got, changes) {
			t.Errorf("version %d, changes %v, %v; want %d, %v", log.Version, got, err, version, changes)
		}
		return log.Changes
	}
	begin := read(storekey.Change{}, false, 0, 0)[0]
	exec(t, owner, `INSERT INTO control.connections (connection_id, store_id, provider, external_store_id) `+
		`VALUES ('con_1', 'str_1', 'custom', '1')`)
	d := storekey.Digest([]byte("x"))
	exec(t, owner, `INSERT INTO control.api_keys (api_key_id, connection_id, digest, scopes, changed_version) `+
		`VALUES ('key_1', 'con_1', $1, '{signals:write}', 1), ('key_2', 'con_1', sha256('y'), '{signals:write}', 2)`,
		d[:])
	exec(t, owner, `UPDATE control.api_keys SET revoked_at = now(), changed_version = 3 WHERE api_key_id = 'key_1'`)
	exec(t, owner, `UPDATE control.key_version SET version = 3`)
	all := read(begin, true, 3, 3, 2, 1, 0)
	if !all[3].Same(begin) || all[0].Digest != d || all[2].Digest != d || all[0].Token == all[2].Token {
		t.Errorf("%+v", all)
	}
	read(all[1], true, 3, 3, 2)
	read(storekey.Change{}, false, 3, 3)
	read(storekey.Change{Version: 9}, true, 3, 3) // PostgreSQL was restored
}

func TestLedger(t *testing.T) {
	t.Parallel()
	owner, edge := open(t)
	ledger := NewLedger(edge)
	store := func(c ident.ConnectionID, id ident.SignalID) {
		exec(t, owner, `INSERT INTO relay.ledger_digests (digest) VALUES ($1)`, signal.LedgerDigest(c, id))
	}
	// Rows of the previous form, from before the migration that made the trigger.
	exec(t, owner, `ALTER TABLE relay.ledger DISABLE TRIGGER insert_digest`)
	storeBefore := func(c ident.ConnectionID, id ident.SignalID) {
		exec(t, owner, `INSERT INTO relay.ledger (connection_id, digest) VALUES ($1, $2)`, c,
			signal.LedgerDigest(c, id))
	}
	store("con_1", "sig_a")
	storeBefore("con_1", "sig_c")
	store("con_2", "sig_b")
	storeBefore("con_2", "sig_d")
	for _, tc := range []struct {
		c    ident.ConnectionID
		ids  []ident.SignalID
		want []bool
	}{
		{"con_1", []ident.SignalID{"sig_a", "sig_b", "sig_c", "sig_a"}, []bool{true, false, true, true}},
		{"con_2", []ident.SignalID{"sig_a", "sig_b", "sig_c", "sig_d"}, []bool{false, true, false, true}},
		{"con_3", []ident.SignalID{"sig_a"}, []bool{false}},
		{"con_1", nil, []bool{}},
	} {
		got, err := ledger.Known(t.Context(), tc.c, tc.ids)
		if err != nil || !slices.Equal(got, tc.want) {
			t.Errorf("%s %v: %v, %v, want %v", tc.c, tc.ids, got, err, tc.want)
		}
	}
}

func TestRecentlyStored(t *testing.T) {
	t.Parallel()
	owner, edge := open(t)
	ledger := NewLedger(edge)
	recent := func(want bool) {
		t.Helper()
		if got, err := ledger.RecentlyStored(t.Context(), time.Hour); err != nil || got != want {
			t.Errorf("%t, %v, want %t", got, err, want)
		}
	}
	const insert = `INSERT INTO relay.audit (connection_id, record_id, stored_at, received_at, crawler, ip, user_agent, accept_language, origin, referer)
		VALUES ('con_1', gen_random_uuid(), now() - $1::interval, now(), false, '', '', '', '', '')`
	recent(false)
	exec(t, owner, insert, "61 minutes")
	recent(false)
	exec(t, owner, insert, "59 minutes")
	recent(true)
}

// A flood of look-ups waits, and the look-ups that wait give up with their context.
func TestLookupsAreBounded(t *testing.T) {
	t.Parallel()
	_, edge := open(t)
	keys, ledger := NewKeys(edge, edge), NewLedger(edge)
	look := map[string]func(context.Context) error{
		"key": func(ctx context.Context) error {
			_, _, err := keys.Grant(ctx,
				access.Digest{})
			return err
		},
		"ledger": func(ctx context.Context) error { _, err := ledger.Known(ctx, "con_1", nil); return err },
		"recent": func(ctx context.Context) error {
			_, err := ledger.RecentlyStored(ctx,
				time.Hour)
			return err
		},
	}
	for _, slots := range []*semaphore.Weighted{keys.slots, ledger.slots} {
		if !slots.TryAcquire(maxLookups) || slots.TryAcquire(1) {
			t.Fatal("the bound is not maxLookups")
		}
	}
	for name, lookUp := range look {
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := lookUp(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("%s: one more look-up: %v", name, err)
			}
		})
		cancel()
		wg.Wait()
	}
	keys.slots.Release(maxLookups)
	ledger.slots.Release(maxLookups)
	for name, lookUp := range look {
		if err := lookUp(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The role of the edge may do nothing but what this package does.
func TestRoleOfTheEdge(t *testing.T) {
	t.Parallel()
	_, edge := open(t)
	for _, sql := range []string{
		`SELECT sealed_secret FROM control.api_keys`, `SELECT * FROM control.connections`,
		`SELECT * FROM control.connector_tokens`,
		`UPDATE control.key_version SET version = 0`, `DELETE FROM control.api_keys`,
		`INSERT INTO relay.ledger (connection_id, digest) VALUES ('c', gen_random_uuid())`,
		`INSERT INTO relay.ledger_digests (digest) VALUES (gen_random_uuid())`,
		`SELECT ip FROM relay.audit`, `SELECT * FROM relay.signals`, `SELECT * FROM relay.decisions`,
		`SELECT * FROM delivery.entries`, `CREATE TABLE public.x ()`,
	} {
		var pgErr *pgconn.PgError
		if _, err := edge.Exec(t.Context(), sql); !errors.As(err, &pgErr) || pgErr.Code != "42501" {
			t.Errorf("%s: %v, want insufficient_privilege", sql, err)
		}
	}
}
