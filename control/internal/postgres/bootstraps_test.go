package postgres_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"storefront.internal/control/internal/bootstrap"
	"storefront.internal/control/internal/provider"
	"storefront.internal/shared/catalog"
	"storefront.internal/shared/fault"
)

func (m *market) open(resources ...string) bootstrap.Run {
	m.t.Helper()
	r, err := m.loads.OpenRun(context.Background(), m.from.ConnectionID, resources)
	if err != nil {
		m.t.Fatal(err)
	}
	return r
}

func (m *market) run(r bootstrap.Run) bootstrap.Run {
	m.t.Helper()
	r, err := m.loads.Run(context.Background(), m.from.ConnectionID, r.ID)
	if err != nil {
		m.t.Fatal(err)
	}
	return r
}

func TestOpenALoad(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	custom := m.connect("custom")
	for name, c := range map[string]struct {
		err  error
		code fault.Code
	}{
		"custom": {func() error {
			_, err := m.loads.OpenRun(t.Context(), custom.ConnectionID,
				nil)
			return err
		}(), fault.NotFound},
		"unknown": {func() error { _, err := m.loads.OpenRun(t.Context(), "con_none", nil); return err }(),
			fault.NotFound},
		"resource": {func() error {
			_, err := m.loads.OpenRun(t.Context(), m.from.ConnectionID, []string{"customer"})
			return err
		}(), fault.UnknownResource},
	} {
		if !fault.Is(c.err, c.code) {
			t.Errorf("%s: %v, want %s", name, c.err, c.code)
		}
	}
	first := m.open()
	if r := m.run(first); r.State != bootstrap.Queued || len(r.Resources) != 2 ||
		r.Resources[catalog.Order] != nil {
		t.Errorf("%+v", r)
	}
	var opened atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			_, err := m.loads.OpenRun(t.Context(), m.from.ConnectionID, nil)
			if err == nil {
				opened.Add(1)
			} else if f := fault.From(err); f.Code != fault.BootstrapRunning ||
				f.Extra["bootstrap_run_id"] != string(first.ID) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if opened.Load() != 0 {
		t.Errorf("%d loads beside a running one", opened.Load())
	}
	if _, err := m.loads.Run(t.Context(), custom.ConnectionID, first.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("a run under another connection: %v", err)
	}
}

// TestALoadGoesOnAtItsCursor ends the worker at every call, before and after the result of the call was
// saved.
func TestALoadGoesOnAtItsCursor(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	for i := range 45 {
		m.platform.set(fmt.Sprintf("p%02d", i), "x")
	}
	m.fetched(m.from, m.number(), theProduct("gone", "was there"))
	r := m.open()
	var calls atomic.Int64
	type crash struct{}
	m.platform.fail = func(string) error {
		if calls.Add(1)%2 == 1 {
			panic(crash{})
		}
		return nil
	}
	turn := func() (again time.Duration) {
		defer func() {
			if v := recover(); v != nil {
				again = 1
			}
		}()
		again, err := m.loader.Run(t.Context(), r.ID)
		if err != nil {
			t.Fatal(err)
		}
		return again
	}
	turns := 0
	for turn() > 0 {
		turns++
	}
	got := m.run(r)
	p := got.Resources[catalog.Product]
	if got.State != bootstrap.Completed || p.Read != 45 || p.Changed != 45 || p.Deleted != 1 || turns != 7 {
		t.Errorf("%s after %d turns, product %+v", got.State, turns, p)
	}
	if m.platform.pages > 2*(5+1) {
		t.Errorf("%d pages were read", m.platform.pages)
	}
	m.checkTruth()
	again := m.open()
	m.platform.fail = nil
	if _, err := m.loader.Run(t.Context(), again.ID); err != nil {
		t.Fatal(err)
	}
	if p := m.run(again).Resources[catalog.Product]; p.Read != 45 || p.Changed != 0 || p.Deleted != 0 {
		t.Errorf("a second load changes something: %+v", p)
	}
}

// TestOnlyOneWorkerHasARun runs several workers of one run: no save is doubled.
func TestOnlyOneWorkerHasARun(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	for i := range 40 {
		m.platform.set(fmt.Sprintf("p%02d", i), "x")
	}
	r := m.open("product")
	const workers = 4
	var first sync.WaitGroup // every worker has read the first page before one saves it
	first.Add(workers)
	var calls atomic.Int64
	m.platform.during = func(string) {
		if calls.Add(1) <= workers {
			first.Done()
			first.Wait()
		}
	}
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			if _, err := m.loader.Run(t.Context(), r.ID); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := m.run(r); got.State != bootstrap.Completed || got.Resources[catalog.Product].Read != 40 ||
		got.Resources[catalog.Product].Changed != 40 {
		t.Errorf("%s, %+v", got.State, got.Resources[catalog.Product])
	}
}

// TestNotificationsWinOverOlderPages changes and deletes entities of a page while the page is being read, at
// random.
func TestNotificationsWinOverOlderPages(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	const items = 60
	for i := range items {
		m.platform.set(fmt.Sprintf("p%02d", i), "start")
	}
	m.platform.during = func(call string) { // behind the reading of the page, before it is saved
		if call[0] != 'p' {
			return
		}
		for range 4 {
			id := fmt.Sprintf("p%02d", rand.IntN(items))
			title := fmt.Sprint("moved ", rand.Int())
			if rand.IntN(2) == 0 {
				title = ""
			}
			m.platform.set(id, title)
			if rand.IntN(10) > 0 { // one of ten is lost
				m.notify(provider.Changed, id)
			}
		}
	}
	m.work()
	r := m.open()
	m.settled()
	if got := m.run(r); got.State != bootstrap.Completed {
		t.Fatalf("%s %s", got.State, got.Reason)
	}
	m.platform.mu.Lock()
	m.platform.during = nil
	m.platform.mu.Unlock()
	m.open() // what was lost behind its page is found by the next load
	m.settled()
	m.checkTruth()
	if n := m.retries(); n != 0 {
		t.Errorf("%v transactions were repeated", n)
	}
}

func TestALoadThatFailsSaysWhy(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	m.platform.set("p", "x")
	r := m.open()
	m.platform.fail = func(string) error { return &provider.Temporary{Reason: provider.ReasonServerError} }
	for i := 1; i < 60; i++ {
		again, err := m.loader.Run(t.Context(), r.ID)
		if got := m.run(r); err != nil || again <= 0 || again > time.Minute ||
			got.State != bootstrap.Running || got.Reason != "server_error" || got.Failures != i {
			t.Fatalf("attempt %d: again in %v, %v, %+v", i, again, err, got)
		}
	}
	if again, err := m.loader.Run(t.Context(), r.ID); err != nil || again != 0 {
		t.Fatalf("the last attempt: %v, %v", again, err)
	}
	if got := m.run(r); got.State != bootstrap.Failed || got.Reason != "server_error" {
		t.Errorf("%+v", got)
	}
	r = m.open()
	m.platform.fail = func(string) error { return &provider.CredentialRefused{Status: 401} }
	if again, err := m.loader.Run(t.Context(), r.ID); err != nil || again != 0 {
		t.Fatalf("refused: %v, %v", again, err)
	}
	if got := m.run(r); got.State != bootstrap.Failed || got.Reason != "credential_refused" {
		t.Errorf("%+v", got)
	}
	if n := scan[int](m.shop, `SELECT count(*) FROM control.river_job WHERE kind = 'shop_check'`); n != 1 {
		t.Errorf("%d checks of the shop", n)
	}
}

func TestRunsThatNobodyWorksAreTakenUp(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	r := m.open()
	count := func() int {
		return scan[int](m.shop, `SELECT count(*) FROM control.river_job WHERE kind = 'bootstrap_load'`)
	}
	resume := func() {
		t.Helper()
		if err := m.bootstraps.RequeueRuns(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	resume()
	if n := count(); n != 1 {
		t.Errorf("%d jobs of a fresh run", n)
	}
	m.exec(`DELETE FROM control.river_job WHERE kind = 'bootstrap_load'`)
	resume()
	resume()
	if n := count(); n != 1 {
		t.Errorf("%d jobs of a run that lost its job", n)
	}
	if again, err := m.loader.Run(t.Context(), r.ID); err != nil || again != 0 {
		t.Fatal(again, err)
	}
	m.exec(`DELETE FROM control.river_job WHERE kind = 'bootstrap_load'`)
	resume()
	if n := count(); n != 0 {
		t.Errorf("%d jobs of a run that has ended", n)
	}
}
