package postgres_test

import (
	"fmt"
	"testing"

	"storefront.internal/control/internal/observation"
	"storefront.internal/control/internal/provider"
	"storefront.internal/shared/catalog"
)

// TestAnOlderReadingReplacesNoNewerOne lets two fetches overlap: the one that began last has read the shop
// first. Which of both is older cannot be told, so the entity is fetched again.
func TestAnOlderReadingReplacesNoNewerOne(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name         string
		before       string // "" when the shop did not have the product
		older, newer provider.Fetched
		want         observation.Status // of the older one
		title        string             // in the end
	}{
		{"a change", "old", theProduct("p", "old"), theProduct("p", "new"), observation.Stale, "new"},
		{"a deleted product", "old", theProduct("p", "old"), gone("p"), observation.Stale, ""},
		{"the first reading", "", theProduct("p", "old"), gone("p"), observation.Stale, ""},
		{"a product that came back", "old", gone("p"), theProduct("p", "new"), observation.Accepted, "new"},
		{"a new product", "", gone("p"), theProduct("p", "new"), observation.Accepted, "new"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := newMarket(t)
			m.forbidFalls()
			if c.before != "" {
				m.fetched(m.from, m.number(), theProduct("p", c.before))
			}
			first, last := m.number(), m.number()
			m.fetched(m.from, first, c.newer)
			want := m.revisionOf("p")
			if got := m.fetched(m.from, last, c.older); got[0] != c.want {
				t.Errorf("the older reading is %s", got[0])
			}
			if c.want == observation.Accepted { // a delete
				want += 2
			} else if title := m.shown()["p"]; title != c.title {
				t.Errorf("%q is served, want %q", title, c.title)
			}
			m.platform.set("p", c.title)
			m.work()
			m.settled()
			m.checkTruth()
			if n, called := m.revisionOf("p"), m.platform.called("p"); n != want || called != 1 {
				t.Errorf("revision %d, want %d; fetched again %d times, want once", n, want, called)
			}
		})
	}
}

// TestOverlappingReadingsOfAPage: a page may have an entity twice.
func TestOverlappingReadingsOfAPage(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	first, page := m.number(), m.number()
	m.fetched(m.from, first, theProduct("p", "new"))
	got := m.fetched(m.from, page, theProduct("p", "old"), theProduct("q", "q"), theProduct("p", "old"))
	if fmt.Sprint(got) != "[stale accepted stale]" {
		t.Errorf("%s", got)
	}
	if n := scan[int](m.shop, `SELECT count(*) FROM control.river_job WHERE kind = 'entity_refresh'`); n != 1 {
		t.Errorf("%d fetches are enqueued, want one", n)
	}
}

// TestOverlappingReadingsThatAgree fetches nothing again.
func TestOverlappingReadingsThatAgree(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	first, last := m.number(), m.number()
	m.fetched(m.from, first, theProduct("p", "a"))
	if got := m.fetched(m.from, last, theProduct("p", "a")); got[0] != observation.Duplicate {
		t.Errorf("the second reading is %s", got[0])
	}
	if got := m.fetched(m.from, m.number(), theProduct("p", "b")); got[0] != observation.Accepted {
		t.Errorf("a reading that began after both is %s", got[0])
	}
	if n := scan[int](m.shop, `SELECT count(*) FROM control.river_job WHERE kind = 'entity_refresh'`); n != 0 {
		t.Errorf("%d fetches are enqueued", n)
	}
}

func (m *market) revisionOf(external string) int64 {
	m.t.Helper()
	return scan[int64](m.shop, `SELECT coalesce(max(revision), 0) FROM control.entities
		WHERE connection_id = $1 AND entity = $2 AND external_id = $3`, m.from.ConnectionID, catalog.Product, external)
}
