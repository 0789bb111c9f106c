package postgres_test

import (
	"slices"
	"testing"
	"time"
)

// TestBootstrapRunsLeaveWithAge: ended runs leave, the oldest first, but for the last run and the last
// completed one of a connection.
func TestBootstrapRunsLeaveWithAge(t *testing.T) {
	t.Parallel()
	s := newMarket(t)
	s.exec(`INSERT INTO control.connections (connection_id, store_id, provider, external_store_id)
		SELECT 'con_' || c, 'str_' || c, 'shopify', 'shop ' || c FROM unnest(ARRAY['many', 'old', 'bad', 'young']) c`)
	add := func(c, state string, days ...int) {
		s.exec(`INSERT INTO control.bootstrap_runs
			(bootstrap_run_id, command_id, connection_id, state, resources, created_at)
			SELECT 'bsr_' || $1 || '_' || d, 'cmd_' || $1 || d, 'con_' || $1, $2, '{}',
				now() - d * interval '1 day' FROM unnest($3::int[]) d`, c, state, days)
	}
	add("many", "completed", 40, 50, 60, 70)
	add("many", "failed", 10, 45, 65)
	add("old", "completed", 80)
	add("old", "queued", 75)
	add("bad", "failed", 41, 51, 61)
	add("young", "completed", 1, 2, 3)
	purge := func(most int) int {
		t.Helper()
		n, err := s.bootstraps.PurgeRuns(t.Context(), time.Now().AddDate(0, 0, -32), most)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := purge(2); n != 2 || scan[int](s.shop, `SELECT count(*) FROM control.bootstrap_runs
		WHERE bootstrap_run_id IN ('bsr_many_70', 'bsr_many_65')`) != 0 {
		t.Errorf("%d runs are deleted, want the oldest two", n)
	}
	if n := purge(1000); n != 5 { // the work was cut off and goes on
		t.Errorf("%d runs are deleted, want 5", n)
	}
	if n := purge(1000); n != 0 {
		t.Errorf("%d more runs are deleted", n)
	}
	left := scan[[]string](s.shop,
		`SELECT array_agg(bootstrap_run_id ORDER BY bootstrap_run_id) FROM control.bootstrap_runs`)
	if want := []string{"bsr_bad_41", "bsr_many_10", "bsr_many_40", "bsr_old_75", "bsr_old_80", "bsr_young_1",
		"bsr_young_2", "bsr_young_3"}; !slices.Equal(left, want) {
		t.Errorf("left %v, want %v", left, want)
	}
	if _, err := s.bootstraps.PurgeRuns(t.Context(), time.Now().AddDate(0, 0, -29), 1); err == nil {
		t.Error("young runs can be purged")
	}
}
