package postgres_test

import (
	"fmt"
	"testing"

	"storefront.internal/control/internal/observation"
	"storefront.internal/control/internal/provider"
	"storefront.internal/shared/catalog"
	"storefront.internal/shared/fault"
)

// quarantined checks how many observations are in the quarantine, and how many the archive has.
func (s *shop) quarantined(what string, want, archived int) {
	s.t.Helper()
	f, err := s.store.Figures(s.t.Context(), anHour())
	if n := scan[int](s, `SELECT count(*) FROM control.observations`); err != nil || f.Quarantined != want ||
		n != archived {
		s.t.Errorf("%s: %d in the quarantine, want %d; %d in the archive, want %d; %v", what, f.Quarantined,
			want, n, archived, err)
	}
}

// malformed is a product that breaks a rule.
func malformed(external, raw string) provider.Fetched {
	return provider.Fetched{Entity: catalog.Product, ExternalID: external, Raw: []byte(raw),
		Malformed: &provider.Malformed{Reason: "missing at /item"}}
}

func TestAProvidersQuarantineEmpties(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	from := s.provided("leaves")
	fetched := func(f ...provider.Fetched) { s.fetched(from, s.number(), f...) }
	for range 3 {
		fetched(malformed("p", `{"a":1}`))
	}
	s.quarantined("the same bytes three times", 1, 1)
	fetched(malformed("p", `{"a":2}`), malformed("q", `{"a":1}`))
	s.quarantined("other bytes, and another entity", 3, 3)
	fetched(theProduct("p", "sound"))
	s.quarantined("accepted", 1, 4)
	fetched(malformed("p", `{"a":2}`))
	s.quarantined("malformed again", 2, 5)
	fetched(theProduct("p", "sound"))
	s.quarantined("equal to what is applied", 1, 5)
	fetched(gone("q"))
	s.quarantined("gone before it was ever accepted", 0, 5)
	fetched(malformed("p", `{"a":3}`), theProduct("p", "both"), malformed("p", `{"a":4}`))
	s.quarantined("twice in one page", 1, 8)
	fetched(gone("p"))
	s.quarantined("deleted", 0, 9)
}

func TestACustomQuarantineEmpties(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	bad := func(revision int) string {
		return fmt.Sprintf(`{"entity":"product","external_id":"p","revision":%d}`, revision)
	}
	s.one(observation.Quarantined, bad(5))
	s.one(observation.Accepted, product("p", 4, "four"))
	s.quarantined("an older revision is accepted", 1, 2)
	s.one(observation.Accepted, product("p", 5, "five"))
	s.quarantined("the revision is accepted", 0, 3)
	s.one(observation.Quarantined, bad(5))
	s.one(observation.Duplicate, product("p", 5, "five"))
	s.quarantined("the revision is delivered again", 0, 4)
	s.deliver(bad(6), product("p", 7, "seven"), bad(7), bad(8))
	s.quarantined("one body", 2, 8)
	s.deliver(deleted("product", "p", 9))
	s.quarantined("deleted", 0, 9)
}

func TestAProvidersQuarantineIsReplayed(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	c := m.from.ConnectionID
	m.fetched(m.from, m.number(), malformed("p", `{}`), malformed("", `{"no":"id"}`))
	m.exec(`UPDATE control.entities SET quarantined_id = ''`) // as the release before leaves it
	page, err := m.service.Quarantine(t.Context(), c, "")
	if err != nil || len(page.Observations) != 2 {
		t.Fatalf("%+v, %v", page, err)
	}
	for _, q := range page.Observations {
		r, err := m.service.Replay(t.Context(), c, q.ObservationID)
		if q.ExternalID == "" {
			if !fault.Is(err, fault.NotFound) {
				t.Errorf("an observation without an entity: %+v, %v", r, err)
			}
			continue
		}
		if err != nil || r.Status != observation.Quarantined || r.ObservationID != q.ObservationID ||
			r.Reason != "missing at /item" || r.EntityID == "" {
			t.Errorf("%+v, %v", r, err)
		}
	}
	if n := scan[int](m.shop, `SELECT count(*) FROM control.river_job
		WHERE kind = 'entity_refresh' AND args ->> 'external_id' = 'p'`); n != 1 {
		t.Fatalf("%d fetches are enqueued", n)
	}
	m.platform.set("p", "mended")
	m.exec(`UPDATE control.entities SET fetched_at = NULL`)
	key := observation.Key{Entity: catalog.Product, ExternalID: "p"}
	if snooze, err := m.ingest.Refresh(t.Context(), c, key); err != nil || snooze != 0 {
		t.Fatalf("fetched: %v, %v", snooze, err)
	}
	m.quarantined("fetched again", 1, 3)
	m.checkTruth()
}
