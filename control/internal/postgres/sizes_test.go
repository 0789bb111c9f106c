package postgres_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestSizes reads as control's role, which has no special rights.
func TestSizes(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	before, err := m.store.Sizes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"relay.ledger_digests", "control.observations", "delivery.entries",
		"control.river_job"} {
		if before.Tables[table].Bytes == 0 {
			t.Errorf("%s has no size", table)
		}
	}
	for name := range before.Tables {
		if name == "relay.ledger_digests_00" || name == "control.observations_default" {
			t.Errorf("the partition %s is listed", name)
		}
	}
	reader, err := m.super.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reader.Exec(t.Context(), `SELECT FROM control.connections`); err != nil {
		t.Fatal(err)
	}
	for range 50 {
		m.exec(`INSERT INTO relay.ledger_digests (digest) VALUES (gen_random_uuid())`)
	}
	held, err := m.store.Sizes(t.Context())
	if err != nil || held.NextXID < before.NextXID+50 || held.OldestXID > held.NextXID-50 {
		t.Errorf("the snapshot of another role is not seen: %+v, %v", held, err)
	}
	if held.Tables["relay.ledger_digests"].Bytes <= before.Tables["relay.ledger_digests"].Bytes ||
		held.Database <= held.Tables["relay.ledger_digests"].Bytes {
		t.Errorf("ledger %+v after %+v, database %d", held.Tables["relay.ledger_digests"],
			before.Tables["relay.ledger_digests"], held.Database)
	}
	if err := reader.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
}
