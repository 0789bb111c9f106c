package postgres_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"storefront.internal/control/internal/provider"
)

func TestACatchUpFindsWhatNobodyTold(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	m.platform.set("p", "untold")
	if again, err := m.loader.CatchUp(t.Context(), m.from.ConnectionID); err != nil || again != 0 {
		t.Fatal(again, err)
	}
	m.checkTruth()
	if n := scan[int](m.shop,
		`SELECT count(*) FROM control.installations WHERE caught_up_at IS NOT NULL`); n != 1 {
		t.Error("the catch-up is not noted")
	}
	for range 2 { // the first one finds that a load is due
		m.requestCatchUps()
	}
	m.exec(`UPDATE control.connections SET state = 'suspended' WHERE connection_id = $1`, m.from.ConnectionID)
	for range 2 { // a check that waits is not doubled
		m.requestCatchUps()
	}
	if got := scan[string](m.shop,
		`SELECT string_agg(kind, ' ' ORDER BY id) FROM control.river_job WHERE kind <> 'item_push'`); got != "bootstrap_load catch_up shop_check" {
		t.Errorf("jobs: %s", got)
	}
}

// TestACatchUpReadsOrdersWhereItMay: without the scope for orders, a catch-up reads the other resources.
func TestACatchUpReadsOrdersWhereItMay(t *testing.T) {
	t.Parallel()
	for name, refusal := range map[string]error{"with the scope": nil,
		"without": &provider.CredentialRefused{Status: 403}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMarket(t)
			m.platform.set("p", "untold")
			var mu sync.Mutex
			var calls []string
			m.platform.fail = func(call string) error {
				mu.Lock()
				defer mu.Unlock()
				if calls = append(calls, strings.TrimSpace(call)); strings.HasPrefix(call, "page order") {
					return refusal
				}
				return nil
			}
			if again, err := m.loader.CatchUp(t.Context(), m.from.ConnectionID); err != nil || again != 0 {
				t.Fatal(again, err)
			}
			m.checkTruth()
			if want := []string{"page category", "page product", "page order"}; !slices.Equal(calls, want) {
				t.Errorf("calls %q", calls)
			}
			if n := scan[int](m.shop,
				`SELECT count(*) FROM control.installations WHERE caught_up_at IS NOT NULL`); n != 1 {
				t.Error("the catch-up is not noted")
			}
			if n := scan[int](m.shop,
				`SELECT count(*) FROM control.river_job WHERE kind = 'shop_check'`); n != 0 {
				t.Error("the shop is looked into for orders that may not be read")
			}
		})
	}
}

// TestALoadThatFailedIsOpenedAgain: a deletion without a webhook is found only by a bootstrap run.
func TestALoadThatFailedIsOpenedAgain(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	m.open()
	for _, step := range []struct {
		set  string
		runs int
	}{
		{`state = 'failed', created_at = now() - interval '59 minutes'`, 1},
		{`state = 'failed', created_at = now() - interval '61 minutes'`, 2},
		{`state = 'completed', created_at = now() - interval '19 hours'`, 2},
		{`state = 'completed', created_at = now() - interval '25 hours'`, 3},
	} {
		m.exec(`UPDATE control.bootstrap_runs SET ` + step.set)
		m.requestCatchUps()
		if n := scan[int](m.shop, `SELECT count(*) FROM control.bootstrap_runs`); n != step.runs {
			t.Errorf("%s: %d runs, want %d", step.set, n, step.runs)
		}
	}
}
