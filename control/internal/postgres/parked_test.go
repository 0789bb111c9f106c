package postgres_test

import (
	"testing"

	"storefront.internal/control/internal/parked"
	"storefront.internal/control/internal/postgres"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/testkit"
)

func TestParkedRecordsAreListedAndDecided(t *testing.T) {
	t.Parallel()
	url := testkit.Postgres(t)
	owner := testkit.Pool(t, url)
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := owner.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	for i, topic := range []string{"signals", "decisions", "signals", "signals"} {
		exec(`INSERT INTO relay.parked (topic, topic_partition, record_offset, signal_index, connection_id, signal_id,
			reason, sqlstate, bytes) VALUES ($1, 3, $2, 0, 'con_1', 'sig_1', 'refused', '22021', 'a record')`, topic, i)
	}
	store := postgres.NewParked(testkit.Pool(t, testkit.PostgresAs(t, url, "storefront_control")))
	list := func(q parked.Query) (ids []int64, next int64) {
		t.Helper()
		page, err := store.List(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Records {
			ids = append(ids, r.ID)
		}
		return ids, page.Next
	}
	expectIDs := func(q parked.Query, next int64, want ...int64) {
		t.Helper()
		got, after := list(q)
		if len(got) != len(want) || after != next {
			t.Fatalf("%+v: %v, next %d; want %v, next %d", q, got, after, want, next)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%+v: %v, want %v", q, got, want)
			}
		}
	}
	expectIDs(parked.Query{}, 0, 1, 2, 3, 4)
	expectIDs(parked.Query{Topic: "signals", Limit: 2}, 3, 1, 3)
	expectIDs(parked.Query{Topic: "signals", Limit: 2, After: 3}, 0, 4)
	r, err := store.Show(t.Context(), 2)
	if err != nil || string(r.Bytes) != "a record" || r.Topic != "decisions" || r.Offset != 1 ||
		r.Partition != 3 || r.SQLState != "22021" || r.SignalID != "sig_1" ||
		r.ParkedAt.IsZero() || !r.ReplayRequestedAt.IsZero() {
		t.Errorf("%+v, %v", r, err)
	}

	decided := func(what string, err error, want fault.Code) {
		t.Helper()
		if want == "" && err != nil || want != "" && !fault.Is(err, want) {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
	}
	decided("drop", store.Drop(t.Context(), 1, "a load test"), "")
	decided("drop again", store.Drop(t.Context(), 1, "x"), fault.NotFound)
	decided("replay a dropped one", store.Replay(t.Context(), 1), fault.NotFound)
	_, err = store.Show(t.Context(), 1)
	decided("show a dropped one", err, fault.NotFound)
	decided("replay", store.Replay(t.Context(), 2), "")
	decided("replay again", store.Replay(t.Context(), 2), fault.AlreadyReplayed)
	decided("drop one that is being replayed", store.Drop(t.Context(), 2, "x"), fault.AlreadyReplayed)
	decided("replay an unknown one", store.Replay(t.Context(), 99), fault.NotFound)
	expectIDs(parked.Query{}, 0, 2, 3, 4)

	exec(`UPDATE relay.parked SET replayed_at = now(), bytes = digest WHERE parked_id = 2`) // as a relay does
	decided("replay one that was replayed", store.Replay(t.Context(), 2), fault.AlreadyReplayed)
	expectIDs(parked.Query{}, 0, 3, 4)
	if r, err = store.Show(t.Context(), 2); err != nil || len(r.Bytes) > 0 || r.ReplayedAt.IsZero() {
		t.Errorf("a replayed one: %+v, %v", r, err)
	}
	exec(`UPDATE relay.parked SET replay_requested_at = now() WHERE parked_id = 3`)
	exec(`UPDATE relay.parked SET replay_requested_at = NULL, replay_failed_at = now() WHERE parked_id = 3`)
	decided("replay one that failed", store.Replay(t.Context(), 3), "")

	var reason string
	var size int
	if err := owner.QueryRow(t.Context(), `SELECT drop_reason, octet_length(bytes) FROM relay.parked
		WHERE parked_id = 1`).Scan(&reason, &size); err != nil || reason != "a load test" || size != 32 {
		t.Errorf("of a dropped one %q and %d bytes are left, %v", reason, size, err)
	}
}
