package postgres_test

import (
	"testing"
	"time"

	"storefront.internal/engine-relay/internal/upkeep"
	"storefront.internal/shared/pg"
	"storefront.internal/shared/testkit"
)

// TestTheRelaysRoleOwnsNothing: the other tests of this package run as this role, so it has the rights that
// it needs.
func TestTheRelaysRoleOwnsNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.record(t, batchOf(click("a")))
	for _, forbidden := range []string{
		`DELETE FROM relay.ledger_digests`, `UPDATE relay.ledger_digests SET stored_at = now()`,
		`TRUNCATE relay.ledger_digests`, `ALTER TABLE relay.ledger DISABLE TRIGGER insert_digest`,
		`DELETE FROM relay.ledger`, `UPDATE relay.ledger SET stored_at = now()`, `TRUNCATE relay.ledger`,
		`DELETE FROM relay.signals`, `UPDATE relay.signals SET quantity = 1`, `SELECT connection_id FROM relay.signals_default`,
		`SELECT ip FROM relay.audit`, `UPDATE relay.audit SET ip = ''`, `DELETE FROM relay.audit`,
		`UPDATE relay.decisions SET items = '[]'`, `DELETE FROM relay.decisions`,
		`DELETE FROM relay.cart_lines`, `UPDATE relay.cart_lines SET item_id = 'x'`,
		`DELETE FROM relay.parked`, `UPDATE relay.parked SET topic = ''`, `DELETE FROM relay.erasures`, `UPDATE relay.erasures SET digest = gen_random_uuid()`,
		`CREATE TABLE relay.mine (a int)`, `DROP TABLE relay.signals_default`, `CREATE TABLE public.mine (a int)`,
		`SELECT sealed_secret FROM control.api_keys`, `INSERT INTO control.key_version (version) VALUES (1)`,
	} {
		_, err := b.relay.Exec(t.Context(), forbidden)
		if pg.SQLState(err) != "42501" {
			t.Errorf("%s: %v", forbidden, err)
		}
	}
}

func TestWhatTheEdgeMayReadOfTheRelay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	edge := testkit.Pool(t, testkit.PostgresAs(t, b.url, "storefront_edge"))
	f := func(query, state string) {
		t.Helper()
		if _, err := edge.Exec(t.Context(), query); pg.SQLState(err) != state {
			t.Errorf("%s: %v", query, err)
		}
	}
	f(`SELECT connection_id, digest, stored_at FROM relay.ledger`, "")
	f(`SELECT digest, stored_at FROM relay.ledger_digests`, "")
	f(`SELECT EXISTS (SELECT FROM relay.audit WHERE stored_at > now() - interval '1 hour')`, "")
	f(`SELECT ip FROM relay.audit`, "42501")
	f(`INSERT INTO relay.ledger (connection_id, digest) VALUES ('con_a', gen_random_uuid())`, "42501")
	f(`INSERT INTO relay.ledger_digests (digest) VALUES (gen_random_uuid())`, "42501")
	f(`SELECT signal_id FROM relay.signals`, "42501")
	f(`SELECT items FROM relay.decisions`, "42501")
	f(`SELECT quantity FROM relay.cart_lines`, "42501")
	f(`SELECT bytes FROM relay.parked`, "42501")
	f(`SELECT relay.ensure_partitions(7)`, "42501")
	f(`SELECT relay.drop_partitions('2020-01-01')`, "42501")
	f(`SELECT relay.drop_partition('signals', '2020-01-01')`, "42501")
	f(`SELECT relay.purge_cart_lines('2020-01-01', 0, 1)`, "42501")
}

func TestPartitions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	parts := func() int {
		return b.count(
			t,
			`pg_inherits WHERE inhparent IN ('relay.signals'::regclass, 'relay.audit'::regclass, 'relay.decisions'::regclass)`,
		)
	}
	for range 2 {
		ahead, err := b.store.EnsurePartitions(t.Context(), 12)
		if err != nil || ahead != 12 {
			t.Fatalf("ahead %d, %v", ahead, err)
		}
	}
	expect(t, "partitions", parts(), 3*(14+1))

	b.exec(
		t,
		`INSERT INTO relay.audit (connection_id, record_id, stored_at, received_at, crawler, ip, user_agent, accept_language, origin, referer)
		VALUES ('con_a', gen_random_uuid(), now() + interval '15 days', now(), false, '', '', '', '', '')`,
	)
	strays, err := b.store.DefaultPartitionRows(t.Context())
	if err != nil || strays != 1 {
		t.Errorf("strays %d, %v", strays, err)
	}
	ahead, err := b.store.EnsurePartitions(t.Context(), 16)
	if err != nil || ahead != 14 {
		t.Errorf("with a row 15 days ahead in the default partition: ahead %d, %v", ahead, err)
	}

	b.exec(
		t,
		`CREATE TABLE relay.signals_p20200101 PARTITION OF relay.signals FOR VALUES FROM ('2020-01-01') TO ('2020-01-02')`,
	)
	f := func(table upkeep.Table, before time.Time, want bool, state string) {
		t.Helper()
		dropped, err := b.store.DropPartition(t.Context(), table, before)
		if dropped != want || pg.SQLState(err) != state {
			t.Errorf("%s before %v: dropped %t, %v", table, before, dropped, err)
		}
	}
	second := time.Date(2020, 1, 2, 0, 0, 0, 0, time.UTC)
	f(upkeep.Signals, time.Now(), false, "22023") // the last days
	f("cart_lines", second, false, "22023")
	f(upkeep.Signals, second.AddDate(0, 0, -1), false, "")
	f(upkeep.Audit, second, false, "")
	f(upkeep.Signals, second, true, "")
	f(upkeep.Signals, second, false, "")
}

// TestAMissingPartitionIsNotPoison: without a partition for the row the sink stops, and stores the row once
// there is one.
func TestAMissingPartitionIsNotPoison(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, `ALTER TABLE relay.decisions DETACH PARTITION relay.decisions_default`)
	attempts := 0
	b.writer = writerThat(b.store, func() {
		if attempts++; attempts == 2 {
			b.exec(t, `ALTER TABLE relay.decisions ATTACH PARTITION relay.decisions_default DEFAULT`)
		}
	})
	b.record(t, decision("dec_1", "", "itm_1"))
	expect(t, "attempts that failed", attempts, 2)
	expect(t, "parked", b.count(t, "relay.parked"), 0)
	expect(t, "decisions", b.count(t, "relay.decisions"), 1)
}
