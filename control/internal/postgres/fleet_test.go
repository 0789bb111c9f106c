package postgres_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"storefront.internal/control/internal/bootstrap"
	"storefront.internal/shared/fault"
)

// requestCatchUps makes every shop due and lets the periodic job run.
func (m *market) requestCatchUps() {
	m.t.Helper()
	m.exec(`UPDATE control.installations SET catch_up_at = 'epoch'`)
	if err := m.bootstraps.RequestCatchUps(m.t.Context(), time.Hour, day); err != nil {
		m.t.Fatal(err)
	}
}

// fleet adds installed shops, which are due. Every tenth had its last run long ago, the others this minute.
func (m *market) fleet(n int) {
	m.t.Helper()
	m.exec(`INSERT INTO control.connections (connection_id, store_id, provider, external_store_id)
		SELECT 'con_f' || i, 'str_f' || i, 'tiendanube', 'f' || i FROM generate_series(1, $1) AS i`, n)
	m.exec(`INSERT INTO control.installations (installation_id, connection_id, provider, provider_app_id, state)
		SELECT 'ins_f' || i, 'con_f' || i, 'tiendanube', 'app', 'completed' FROM generate_series(1, $1) AS i`, n)
	m.exec(`INSERT INTO control.bootstrap_runs
		(bootstrap_run_id, command_id, connection_id, state, resources, created_at)
		SELECT 'bsr_f' || i, 'cmd_f' || i, 'con_f' || i, 'completed', '{}',
			now() - CASE WHEN i % 10 = 0 THEN interval '30 hours' ELSE interval '1 minute' END
		FROM generate_series(1, $1) AS i`, n)
}

// jobsOf counts the jobs of a kind by queue and priority.
func (m *market) jobsOf(kind string) string {
	m.t.Helper()
	return scan[string](m.shop, `SELECT coalesce(string_agg(n, ', ' ORDER BY n), '') FROM (
		SELECT count(*) || ' in ' || queue || ' ' || priority AS n FROM control.river_job WHERE kind = $1
		GROUP BY queue, priority) AS g`, kind)
}

// TestCatchUpsOfAFleetGoOnAfterACutOff lets a later page fail: the pages before it stay done, and the next
// job does the rest.
func TestCatchUpsOfAFleetGoOnAfterACutOff(t *testing.T) {
	t.Parallel()
	const shops = 1000
	m := newMarket(t)
	m.exec(`UPDATE control.connections SET state = 'uninstalled'`) // that of the market
	m.fleet(shops)
	m.exec(`UPDATE control.installations SET catch_up_at = now() - interval '1 hour' + ltrim(installation_id,
		'ins_f')::int * interval '1 second' WHERE installation_id <> 'ins_1'`)
	// the 700th shop stops its page
	m.exec(`CREATE FUNCTION control.stop() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN RAISE EXCEPTION 'stopped'; END $$`)
	m.exec(`CREATE TRIGGER stop BEFORE UPDATE ON control.installations FOR EACH ROW
		WHEN (OLD.installation_id = 'ins_f700') EXECUTE FUNCTION control.stop()`)
	if err := m.bootstraps.RequestCatchUps(t.Context(), time.Hour, day); err == nil {
		t.Fatal("the page did not fail")
	}
	if got := m.jobsOf("catch_up"); got != "540 in catch_up 1" {
		t.Errorf("catch-ups after the cut-off: %s", got)
	}
	m.exec(`DROP TRIGGER stop ON control.installations`)
	if err := m.bootstraps.RequestCatchUps(t.Context(), time.Hour, day); err != nil {
		t.Fatal(err)
	}
	if got := m.jobsOf("catch_up"); got != "900 in catch_up 1" {
		t.Errorf("catch-ups: %s", got)
	}
	if got := m.jobsOf("bootstrap_load"); got != "100 in shop_load 4" {
		t.Errorf("reloads: %s", got)
	}
}

// TestShopsAreDueSpreadOverTheInterval: shops that were due at once are due at times of their own afterwards,
// each once in the interval.
func TestShopsAreDueSpreadOverTheInterval(t *testing.T) {
	t.Parallel()
	const shops = 600
	m := newMarket(t)
	m.fleet(shops)
	m.requestCatchUps()
	const tenths = `SELECT count(*) FROM (SELECT count(*) AS n FROM control.installations
		WHERE catch_up_at > now() AND catch_up_at <= now() + interval '1 hour'
		GROUP BY width_bucket(extract(epoch FROM catch_up_at - now()), 0, 3600, 10)) AS g WHERE n BETWEEN 20 AND 120`
	if n := scan[int](m.shop, tenths); n != 10 {
		t.Errorf("%d of ten parts of the next hour have their share of the shops", n)
	}
	place := func() string {
		return scan[string](m.shop, `SELECT (extract(epoch FROM catch_up_at)::bigint % 3600)::text
			FROM control.installations WHERE installation_id = 'ins_f1'`)
	}
	before := place()
	if m.requestCatchUps(); place() != before {
		t.Error("a shop has another place in the next interval")
	}
	if got := m.jobsOf("catch_up"); got != "601 in catch_up 1" { // reloads were opened the first time
		t.Errorf("catch-ups: %s", got)
	}
}

// TestPeriodicWorkWaitsForNobody: a shop that another transaction holds is passed over and stays due, so that
// a reinstallation (operation 5) and open_bootstrap (operation 8) cannot deadlock with the periodic work.
func TestPeriodicWorkWaitsForNobody(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	m.fleet(20)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tx, err := m.super.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	if _, err := tx.Exec(ctx, `SELECT FROM control.connections WHERE connection_id = 'con_f3' FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	if err := m.bootstraps.RequestCatchUps(ctx, time.Hour, day); err != nil {
		t.Fatal(err)
	}
	if due := scan[string](m.shop, `SELECT string_agg(connection_id, ' ') FROM control.installations
		WHERE catch_up_at <= now()`); due != "con_f3" {
		t.Errorf("due: %s", due)
	}
}

// TestFirstLoadsHaveWorkersOfTheirOwn: a shop without a catalog does not wait behind the loads of others, and
// a load that somebody asked for goes before periodic ones.
func TestFirstLoadsHaveWorkersOfTheirOwn(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	m.fleet(20)
	r := m.open()
	if got := m.jobsOf("bootstrap_load"); got != "1 in first_load 1" {
		t.Errorf("the first run: %s", got)
	}
	requeue := func() {
		t.Helper()
		if err := m.bootstraps.RequeueRuns(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if requeue(); m.jobsOf("bootstrap_load") != "1 in first_load 1" {
		t.Errorf("requeued: %s", m.jobsOf("bootstrap_load"))
	}
	if _, err := m.loader.Run(t.Context(), r.ID); err != nil || m.run(r).State != bootstrap.Completed {
		t.Fatal(err)
	}
	m.exec(`DELETE FROM control.river_job`)
	m.open()
	m.exec(`UPDATE control.installations SET catch_up_at = 'epoch'`)
	if err := m.bootstraps.RequestCatchUps(t.Context(), time.Hour, day); err != nil {
		t.Fatal(err)
	}
	requeue()
	if got := m.jobsOf("bootstrap_load"); got != "1 in shop_load 1, 2 in shop_load 4" {
		t.Errorf("runs: %s", got)
	}
	if _, err := m.loads.OpenRun(t.Context(), "con_f10", nil); !fault.Is(err, fault.BootstrapRunning) {
		t.Errorf("a second run: %v", err)
	}
}

// TestUnfinishedWorkIsRequeuedInPages covers more runs and installations than a page.
func TestUnfinishedWorkIsRequeuedInPages(t *testing.T) {
	t.Parallel()
	const shops = 450
	m := newMarket(t)
	m.fleet(shops)
	m.exec(`UPDATE control.bootstrap_runs SET state = 'running'`)
	m.exec(`UPDATE control.installations SET state = 'opened' WHERE installation_id <> 'ins_1'`)
	for range 2 {
		if err := m.bootstraps.RequeueRuns(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := m.installations.RequeueInstallations(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := m.jobsOf("bootstrap_load"), fmt.Sprint(shops, " in first_load 1"); got != want {
		t.Errorf("runs: %s", got)
	}
	if got, want := m.jobsOf("installation_saga"), fmt.Sprint(shops, " in installation 1"); got != want {
		t.Errorf("installations: %s", got)
	}
}

// TestSubscriptionsOfAFleetAreCheckedOnceInAnInterval: each shop has its own job, so one that hangs holds one
// worker.
func TestSubscriptionsOfAFleetAreCheckedOnceInAnInterval(t *testing.T) {
	t.Parallel()
	const shops = 450
	m := newMarket(t)
	m.fleet(shops)
	m.exec(`UPDATE control.connections SET state = 'suspended' WHERE connection_id = 'con_f1'`)
	check := func(want int) {
		t.Helper()
		if err := m.installations.RequestSubscriptionChecks(t.Context(), time.Hour); err != nil {
			t.Fatal(err)
		}
		if got := m.jobsOf("subscription_check"); got != fmt.Sprint(want, " in subscription_check 1") {
			t.Errorf("checks: %s, want %d", got, want)
		}
		m.exec(`UPDATE control.river_job SET state = 'completed', finalized_at = now()`)
	}
	check(shops) // with the market's
	check(shops)
	m.exec(`UPDATE control.installations SET swept_at = now() - interval '61 minutes'
		WHERE installation_id = 'ins_f7'`)
	check(shops + 1)
}

// TestLateShopsAreCounted: neither a recent catch-up nor a recent run makes a shop late.
func TestLateShopsAreCounted(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	m.fleet(30)
	m.exec(`UPDATE control.installations SET opened_at = now() - interval '3 days'`)
	m.exec(`UPDATE control.installations SET caught_up_at = now() WHERE installation_id = 'ins_f10'`)
	f, err := m.store.Figures(t.Context(), anHour())
	if err != nil || f.Late["tiendanube"] != 3 { // f20, f30 and the market's
		t.Errorf("%d late shops, %v", f.Late["tiendanube"], err)
	}
}
