package postgres_test

import (
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"storefront.internal/control/internal/jobs"
	"storefront.internal/control/internal/postgres"
	"storefront.internal/control/internal/provider"
	shops "storefront.internal/control/internal/shop"
	"storefront.internal/shared/pg"
	"storefront.internal/shared/testkit"
)

// openSwitch returns the Switch under control's role.
func (m *market) openSwitch() *postgres.Switch {
	m.t.Helper()
	pool := testkit.Pool(m.t, testkit.PostgresAs(m.t, m.url, "storefront_control"))
	inserter, err := jobs.NewInserter(pool, slog.New(slog.DiscardHandler))
	if err != nil {
		m.t.Fatal(err)
	}
	return postgres.NewSwitch(pool, inserter)
}

func TestADisabledConnectionIsLeftAlone(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	m.platform.set("kept", "old")
	m.platform.set("gone", "x")
	m.work()
	m.notify(provider.Changed, "kept")
	m.notify(provider.Changed, "gone")
	m.settled()
	door := m.openSwitch()
	id := m.from.ConnectionID
	if ok, err := door.Disable(t.Context(), id, shops.DisabledByOperator, "floods us"); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if ok, err := door.Disable(t.Context(), id, shops.DisabledByCrashes, "x"); ok || err != nil {
		t.Error("disabled twice", err)
	}
	calls, pages := m.platform.called("kept")+m.platform.called("gone"), m.platform.pages

	m.platform.set("kept", "new")
	m.platform.set("gone", "")
	m.platform.set("unheard", "of")
	m.notify(provider.Changed, "kept")
	m.notify(provider.Deleted, "gone")
	m.notify(provider.Unspecified, "")
	m.platform.profile = &provider.CredentialRefused{Status: 401}
	m.notify(provider.Uninstalled, "") // waits
	m.platform.profile = nil
	if n := scan[int](m.shop, `SELECT count(*) FROM control.river_job
		WHERE kind IN ('entity_refresh', 'catch_up') AND state NOT IN ('completed', 'cancelled')`); n != 0 {
		t.Errorf("%d jobs for a disabled connection", n)
	}
	// Periodic work passes it over, and so does a job that was enqueued before.
	m.exec(`UPDATE control.entities SET sweep_at = 'epoch'`)
	m.exec(`UPDATE control.installations SET swept_at = NULL, catch_up_at = 'epoch'`)
	run, err := m.loads.OpenRun(t.Context(), m.from.ConnectionID, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, work := range []func() error{
		func() error { return m.catalog.RequeueMarked(t.Context()) },
		func() error { return m.bootstraps.RequestCatchUps(t.Context(), time.Hour, day) },
	} {
		if err := work(); err != nil {
			t.Error(err)
		}
	}
	for deadline := time.Now().Add(time.Minute); scan[int](m.shop, `SELECT count(*) FROM control.river_job
		WHERE kind = 'shop_check' AND state = 'scheduled' AND scheduled_at > now() + interval '9 minutes'`) == 0; {
		if time.Sleep(10 * time.Millisecond); time.Now().After(deadline) {
			t.Fatal("the check of the shop does not wait")
		}
	}
	m.exec(`UPDATE control.river_job SET state = 'cancelled', finalized_at = now() WHERE kind = 'shop_check'`)
	m.settled()
	if n := m.platform.called("kept") + m.platform.called("gone"); n != calls || m.platform.pages != pages {
		t.Errorf("%d fetches and %d pages of a disabled connection", n-calls, m.platform.pages-pages)
	}
	if state := scan[string](m.shop, `SELECT state FROM control.bootstrap_runs WHERE bootstrap_run_id = $1`,
		run.ID); state == "failed" || state == "completed" {
		t.Errorf("its run is %s", state)
	}
	if n := scan[int](m.shop, `SELECT count(*) FROM control.webhook_deliveries`); n != 6 {
		t.Errorf("%d webhooks are archived", n)
	}
	all, err := door.ListDisabled(t.Context())
	if err != nil || len(all) != 1 || all[0].By != shops.DisabledByOperator || all[0].Reason != "floods us" ||
		all[0].ID != m.from.ConnectionID || all[0].At.IsZero() {
		t.Errorf("%+v, %v", all, err)
	}

	m.exec(`UPDATE control.bootstrap_runs SET state = 'failed'`) // so that only the catch-up and the marks are left
	if ok, err := door.Enable(t.Context(), m.from.ConnectionID); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if ok, err := door.Enable(t.Context(), m.from.ConnectionID); ok || err != nil {
		t.Error("enabled twice", err)
	}
	if err := m.catalog.RequeueMarked(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.settled()
	m.checkTruth()
}

func TestARunOfADisabledConnectionContinues(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	door := m.openSwitch()
	if _, err := door.Disable(t.Context(), m.from.ConnectionID, shops.DisabledByOperator, "x"); err != nil {
		t.Fatal(err)
	}
	m.platform.set("p", "x")
	if _, err := m.loads.OpenRun(t.Context(), m.from.ConnectionID, nil); err != nil {
		t.Fatal(err)
	}
	m.work()
	m.settled()
	if len(m.shown()) > 0 {
		t.Error("a disabled connection was read")
	}
	if _, err := door.Enable(t.Context(), m.from.ConnectionID); err != nil {
		t.Fatal(err)
	}
	m.settled()
	m.checkTruth()
	if n := scan[int](m.shop, `SELECT count(*) FROM control.bootstrap_runs WHERE state = 'completed'`); n != 1 {
		t.Errorf("%d runs are completed", n)
	}
}

func TestAMarkWhoseJobIsLostIsFoundAgain(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	m.platform.set("p", "x")
	m.work()
	m.notify(provider.Changed, "p")
	m.settled()
	m.platform.set("p", "")
	var refuse atomic.Bool
	refuse.Store(true)
	m.platform.mu.Lock()
	m.platform.fail = func(string) error {
		if refuse.Load() {
			return &provider.CredentialRefused{Status: 403}
		}
		return nil
	}
	m.platform.mu.Unlock()
	m.notify(provider.Deleted, "p")
	m.settled() // the refusal cancelled the job
	refuse.Store(false)
	sweep := func() {
		t.Helper()
		if err := m.catalog.RequeueMarked(t.Context()); err != nil {
			t.Fatal(err)
		}
		m.settled()
	}
	sweep()
	if len(m.shown()) != 1 {
		t.Fatal("swept before its time, or not refused")
	}
	m.exec(`UPDATE control.entities SET sweep_at = now() - interval '1 second'`)
	sweep()
	m.checkTruth()
	if n := scan[int](m.shop, `SELECT count(*) FROM control.entities WHERE dirty_seq > clean_seq`); n != 0 {
		t.Errorf("%d entities are still marked", n)
	}
}

// TestAJobThatEndsItsProcessDisablesItsConnection leaves behind what a process leaves that dies while it runs
// a job for the third time.
func TestAJobThatEndsItsProcessDisablesItsConnection(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	m.platform.set("p", "x")
	m.notify(provider.Changed, "p")
	m.exec(`UPDATE control.river_job SET state = 'running', attempt = 3, attempted_at = now() - interval '1 hour',
		attempted_by = '{dead}', errors = ARRAY(
			SELECT jsonb_build_object('at', now() - n * interval '5 minutes', 'attempt', 3 - n, 'trace', '',
				'error', 'Stuck job rescued by JobRescuer')
			FROM generate_series(2, 1, -1) AS n)`)
	m.work()
	m.settled()
	if m.platform.called("p") != 0 {
		t.Error("the job ran a fourth time")
	}
	if got := scan[string](m.shop, `SELECT disabled_by || ': ' || regexp_replace(disabled_reason, '\d+', 'N')
		FROM control.connections WHERE connection_id = $1`, m.from.ConnectionID); got !=
		"crashes: job N (entity_refresh) ended its process 3 times" {
		t.Error(got)
	}
	if _, err := m.openSwitch().Enable(t.Context(), m.from.ConnectionID); err != nil {
		t.Fatal(err)
	}
	m.settled()
	m.checkTruth()
}

func TestARunsAndASagasConnectionIsFound(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	run, err := m.loads.OpenRun(t.Context(), m.from.ConnectionID, nil)
	if err != nil {
		t.Fatal(err)
	}
	door := m.openSwitch()
	if held, err := door.HoldConnection(t.Context(), "", run.ID, "", "x"); err != nil ||
		held != m.from.ConnectionID {
		t.Errorf("of a run: %q, %v", held, err)
	}
	if held, err := door.HoldConnection(t.Context(), "", "", "ins_1", "x"); err != nil ||
		held != m.from.ConnectionID {
		t.Errorf("of a saga: %q, %v", held, err)
	}
	if held, err := door.HoldConnection(t.Context(), "", "bsr_none", "", "x"); held != "" || err != nil {
		t.Errorf("of none: %q, %v", held, err)
	}
}

func TestTheSweepOfMarksUsesItsIndex(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	m.exec(`INSERT INTO control.entities (connection_id, entity, external_id)
		SELECT $1, 'product', n::text FROM generate_series(1, 20000) AS n`, m.from.ConnectionID)
	m.exec(`ANALYZE control.entities`)
	plan := scan[string](m.shop, `EXPLAIN (FORMAT JSON) SELECT connection_id FROM control.entities
		WHERE dirty_seq > clean_seq AND redacted_at IS NULL AND sweep_at < now() ORDER BY sweep_at LIMIT 500`)
	if !strings.Contains(plan, "entities_marked") {
		t.Error(plan)
	}
	_, err := m.super.Exec(t.Context(), `UPDATE control.connections SET disabled_at = now()`)
	if pg.SQLState(err) != "23514" {
		t.Errorf("disabled by nobody: %v", err)
	}
}
