package postgres_test

import (
	"testing"
	"time"

	"storefront.internal/control/internal/stats"
)

func TestFigures(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	c := s.source.ConnectionID
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := s.super.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	f, err := s.store.Figures(t.Context(), anHour())
	if err != nil || f.Installations["opened"] != 0 || len(f.Installations) != 5 || len(f.Bootstraps) != 2 ||
		f.OldestInstallation != 0 || f.DaysAhead < 6 || len(f.Jobs) != 0 {
		t.Fatalf("an empty store: %+v, %v", f, err)
	}
	exec(`INSERT INTO control.installations (installation_id, connection_id, provider, provider_app_id, opened_at)
		VALUES ('ins_a', $1, 'shopify', 'app', now() - interval '2 hours')`, c)
	exec(`INSERT INTO control.bootstrap_runs (bootstrap_run_id, command_id, connection_id, state, resources, updated_at)
		VALUES ('bsr_a', 'cmd_a', $1, 'running', '{}', now() - interval '1 hour'), ('bsr_b', 'cmd_b', $1, 'completed', '{}', now() - interval '9 hours')`, c)
	exec(`INSERT INTO control.river_job (kind, queue, state, args, max_attempts, finalized_at)
		VALUES ('k', 'q', 'available', '{}', 5, NULL), ('k', 'q', 'available', '{}', 5, NULL), ('k', 'q', 'discarded', '{}', 5, now()), ('k', 'q', 'completed', '{}', 5, now())`)
	exec(`DROP TABLE control.webhook_deliveries_p` + time.Now().UTC().AddDate(0, 0, 3).Format("20060102"))
	f, err = s.store.Figures(t.Context(), anHour())
	if err != nil || f.Installations["opened"] != 1 || f.Bootstraps["running"] != 1 ||
		f.Bootstraps["queued"] != 0 {
		t.Errorf("%+v, %v", f, err)
	}
	if f.OldestInstallation < 2*time.Hour || f.StalestBootstrap < time.Hour ||
		f.StalestBootstrap > 8*time.Hour {
		t.Errorf("ages: %+v", f)
	}
	if len(f.Jobs) != 2 || f.Jobs[stats.Job{Queue: "q", State: "available"}] != 2 ||
		f.Jobs[stats.Job{Queue: "q", State: "discarded"}] != 1 {
		t.Errorf("jobs: %+v", f.Jobs)
	}
	if f.DaysAhead > 2 {
		t.Errorf("%d days ahead though the third has no partition", f.DaysAhead)
	}
}

func anHour() stats.Limits { return stats.Limits{Silent: time.Hour, Late: time.Hour} }
