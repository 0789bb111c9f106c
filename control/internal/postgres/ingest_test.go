package postgres_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"storefront.internal/control/internal/ingest"
	"storefront.internal/control/internal/observation"
	"storefront.internal/control/internal/provider"
	"storefront.internal/shared/catalog"
	"storefront.internal/shared/ident"
)

// provided creates a connection of a provider.
func (s *shop) provided(external string) observation.Source {
	s.t.Helper()
	from := observation.Source{
		ConnectionID: ident.ConnectionID(ident.Mint(ident.Connection, time.Now())),
		StoreID:      ident.StoreID(ident.Mint(ident.Store, time.Now())), Provider: "tiendanube",
	}
	if _, err := s.super.Exec(s.t.Context(),
		`INSERT INTO control.connections (connection_id, store_id, provider, external_store_id) VALUES ($1, $2, $3, $4)`,
		from.ConnectionID, from.StoreID, from.Provider, external); err != nil {
		s.t.Fatal(err)
	}
	return from
}

// theProduct is a product as a provider returns it.
func theProduct(external, title string) provider.Fetched {
	return provider.Fetched{
		Entity: catalog.Product, ExternalID: external, Raw: fmt.Appendf(nil,
			`{"id":%q, "title":%q}`, external, title),
		Document: &catalog.CatalogAggregate{
			Item:     catalog.Item{Title: catalog.LocalizedText{"en": title}, Status: catalog.Active},
			Variants: []catalog.Variant{{ExternalID: "v"}},
		},
	}
}

func gone(external string) provider.Fetched {
	return provider.Fetched{Entity: catalog.Product, ExternalID: external, Gone: true,
		Raw: []byte(`{"code":404}`)}
}

func (s *shop) number() int64 {
	s.t.Helper()
	n, err := s.catalog.NextFetchSeq(context.Background())
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

func (s *shop) fetched(from observation.Source, number int64, f ...provider.Fetched) []observation.Status {
	s.t.Helper()
	outcomes, err := s.catalog.Apply(context.Background(), ingest.NewBatch(from, time.Now(), f, number))
	if err != nil {
		s.t.Fatal(err)
	}
	var statuses []observation.Status
	for _, o := range outcomes {
		statuses = append(statuses, o.Status)
	}
	return statuses
}

func TestFetchesAreNumberedAndCompared(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	from := s.provided("numbered")
	s.source = from
	check := func(got []observation.Status, want ...observation.Status) {
		t.Helper()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
	n1, n2 := s.number(), s.number()
	check(s.fetched(from, n2, theProduct("p", "two")), observation.Accepted)
	check(s.fetched(from, n1, theProduct("p", "one")), observation.Stale)
	n3 := s.number()
	check(s.fetched(from, n3, theProduct("p", "two")), observation.Duplicate)
	check(s.fetched(from, n2, theProduct("p", "late")), observation.Stale)
	check(s.fetched(from, s.number(), gone("p")), observation.Accepted)
	check(s.fetched(from, n3, theProduct("p", "risen")), observation.Stale)
	check(s.fetched(from, s.number(), gone("p")), observation.Duplicate)
	if v := s.served("p"); v.Body != nil || v.Revision != 2 {
		t.Errorf("the deleted item is served: %+v", v)
	}
	n6, n7 := s.number(), s.number()
	check(s.fetched(from, n7, gone("never")), observation.Duplicate)
	check(s.fetched(from, n6, theProduct("never", "risen")), observation.Stale)
	bad := provider.Fetched{Entity: catalog.Product, ExternalID: "p", Raw: []byte(`{`),
		Malformed: &provider.Malformed{Reason: "missing at /item"}}
	check(s.fetched(from, s.number(), bad), observation.Quarantined)
	// A page may contain an entity twice; the later element is the newer.
	check(s.fetched(from, s.number(), theProduct("p", "a"), theProduct("p", "b")), observation.Accepted,
		observation.Accepted)
	if title, _, revision := titleOf(t, s.served("p").Body); title != "b" || revision != 4 {
		t.Errorf("served %q at %d", title, revision)
	}
	if n := scan[int](s, `SELECT count(*) FROM delivery.entries WHERE connection_id = $1`,
		from.ConnectionID); n != 4 {
		t.Errorf("%d envelopes, want 4", n)
	}
}

func TestAProvidersObservationIsReadRaw(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	from := s.provided("raw")
	outcomes, err := s.catalog.Apply(t.Context(), ingest.NewBatch(from, time.Now(),
		[]provider.Fetched{theProduct("p", "x")}, s.number()))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := s.service.Raw(t.Context(), outcomes[0].ObservationID)
	if err != nil || string(raw) != `{"id":"p", "title":"x"}` {
		t.Errorf("%q, %v", raw, err)
	}
	if _, err := s.service.Snapshot(t.Context(), outcomes[0].ObservationID); err == nil {
		t.Error("read_canonical serves what a provider sent")
	}
	var envelope struct {
		Data struct {
			Snapshot string `json:"snapshot"`
			Digest   string `json:"content_digest"`
			Revision int64  `json:"revision"`
		} `json:"data"`
	}
	if err := json.Unmarshal(scan[[]byte](s, `SELECT body FROM delivery.entries WHERE connection_id = $1`,
		from.ConnectionID), &envelope); err != nil {
		t.Fatal(err)
	}
	if d := envelope.Data; d.Snapshot != "raw" || d.Digest != catalog.Digest(raw) || d.Revision != 1 {
		t.Errorf("envelope %+v", d)
	}
}

// TestFetchesThatEndInAnyOrder fetches a changing truth. Fetches begin, read and are stored in any order, and
// some are stored at the same time. It expects that no older version replaces a newer one, and that the fetch
// which follows overlapping ones brings the last truth.
func TestFetchesThatEndInAnyOrder(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.forbidFalls()
	from := s.provided("any order")
	s.source = from
	truth := 0
	see := func() provider.Fetched { // one of five is a delete
		if truth++; truth%5 == 0 {
			return gone("p")
		}
		return theProduct("p", fmt.Sprint(truth))
	}
	type fetch struct {
		number int64
		seen   *provider.Fetched
	}
	under := make([]fetch, 8)
	var stores sync.WaitGroup
	for range 600 {
		switch f := &under[rand.IntN(len(under))]; {
		case f.number == 0:
			f.number = s.number()
		case f.seen == nil:
			seen := see()
			f.seen = &seen
		default:
			ended := *f
			stores.Go(func() { s.fetched(from, ended.number, *ended.seen) })
			if rand.IntN(3) > 0 { // the others are stored while more begin
				stores.Wait()
			}
			*f = fetch{}
		}
	}
	stores.Wait()
	for truth%5 != 1 {
		see()
	}
	s.fetched(from, s.number(), theProduct("p", fmt.Sprint(truth)))
	if title, _, _ := titleOf(t, s.served("p").Body); title != fmt.Sprint(truth) {
		t.Errorf("served %s, the truth is %d", title, truth)
	}
	if n := scan[int](s, `
WITH seen AS (
    SELECT revision, (convert_from(raw, 'UTF8')::json ->> 'title')::int AS truth
    FROM control.observations
    WHERE connection_id = $1 AND state = 'accepted' AND operation = 'upsert'
)
SELECT count(*) FROM seen a JOIN seen b ON a.revision < b.revision AND a.truth > b.truth`,
		from.ConnectionID); n != 0 {
		t.Errorf("%d times an older truth came after a newer one", n)
	}
	if n := s.retries(); n != 0 {
		t.Errorf("%v transactions were repeated", n)
	}
}

// forbidFalls makes the database reject a revision that does not rise, since the order of rows proves
// nothing.
func (s *shop) forbidFalls() {
	s.t.Helper()
	for _, sql := range []string{`
CREATE FUNCTION control.refuse_fall() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	RAISE EXCEPTION '% fell: % after %', TG_TABLE_NAME, NEW, OLD;
END $$`, `
CREATE TRIGGER refuse_fall BEFORE UPDATE ON control.entities FOR EACH ROW
WHEN (NEW.revision < OLD.revision OR NEW.revision = OLD.revision AND NEW.observation_id <> OLD.observation_id)
EXECUTE FUNCTION control.refuse_fall()`, `
CREATE TRIGGER refuse_fall BEFORE UPDATE ON control.aggregates FOR EACH ROW
WHEN (NEW.refresh_revision < OLD.refresh_revision OR NEW.refresh_revision = OLD.refresh_revision AND NEW.body IS DISTINCT FROM OLD.body)
EXECUTE FUNCTION control.refuse_fall()`} {
		if _, err := s.super.Exec(s.t.Context(), sql); err != nil {
			s.t.Fatal(err)
		}
	}
}

// TestADeleteDuringAPageStaysDeleted applies a page that was read before a delete at random times around the
// delete.
func TestADeleteDuringAPageStaysDeleted(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.forbidFalls()
	from := s.provided("delete in a page")
	rounds := 100
	if os.Getenv("SOAK") == "1" {
		rounds = 1000
	}
	for i := range rounds {
		id := fmt.Sprintf("p%d", i)
		if i%2 == 0 {
			s.fetched(from, s.number(), theProduct(id, "before"))
		}
		page := s.number() // the page holds the item as it was
		items := []provider.Fetched{theProduct("other", fmt.Sprint(i)), theProduct(id, "page")}
		removal := s.number()
		var wg sync.WaitGroup
		wg.Go(func() { s.fetched(from, page, items...) })
		wg.Go(func() { s.fetched(from, removal, gone(id)) })
		wg.Wait()
	}
	if n := scan[int](s,
		`SELECT count(*) FROM control.aggregates WHERE connection_id = $1 AND body IS NOT NULL`,
		from.ConnectionID); n != 1 {
		t.Errorf("%d items are served, want the other one alone", n)
	}
}
