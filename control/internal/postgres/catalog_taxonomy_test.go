package postgres_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"storefront.internal/control/internal/observation"
	"storefront.internal/shared/catalog"
	"storefront.internal/shared/ident"
)

// nameOf is the name that an item's only category has in its body.
func (s *shop) nameOf(external string) string {
	s.t.Helper()
	_, refs, _ := titleOf(s.t, s.served(external).Body)
	if len(refs) != 1 {
		s.t.Fatalf("%d categories", len(refs))
	}
	return refs[0].Name["en"]
}

func TestTaxonomyFollowsItsCategories(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.runJobs()
	const many = 1200 // more than two chunks of one recomposition
	var elements []string
	for i := range many {
		if elements = append(elements, product(fmt.Sprintf("p%04d", i), 1, "t", "c")); len(elements) == 400 {
			s.deliver(elements...)
			elements = nil
		}
	}
	f := func(name string, revision int64) {
		t.Helper()
		s.settled()
		if n := scan[int](s, `SELECT count(*) FROM control.aggregates WHERE refresh_revision = $1`,
			revision); n != many {
			t.Errorf("%d of %d items have revision %d", n, many, revision)
		}
		if got := s.nameOf("p1199"); got != name {
			t.Errorf("name %q, want %q", got, name)
		}
	}
	f("delivered c", 1)
	s.one(observation.Accepted, category("c", 1, "one"))
	f("one", 2)
	s.one(observation.Accepted, category("c", 2, "one")) // nothing shows
	f("one", 2)
	s.deliver(category("c", 3, "two"), deleted("category", "c", 4), category("c", 5, "three"))
	f("three", 3)
	s.one(observation.Accepted, deleted("category", "c", 6))
	f("delivered c", 4)
	// A batch with a category and an item composes the item once.
	s.deliver(product("q", 1, "t", "new"), category("new", 1, "new one"))
	if v := s.served("q"); s.nameOf("q") != "new one" || v.Revision != 1 {
		t.Errorf("revision %d of %s", v.Revision, v.Body)
	}
}

// hold locks an aggregate until release, so that the next writer waits while it holds its other locks.
func (s *shop) hold(external string) (release func()) {
	s.t.Helper()
	tx, err := s.super.Begin(context.Background())
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := tx.Exec(context.Background(), `SELECT FROM control.aggregates WHERE item_id = $1 FOR UPDATE`,
		catalog.NewItemID(s.source.ConnectionID, external)); err != nil {
		s.t.Fatal(err)
	}
	return func() {
		if err := tx.Rollback(context.Background()); err != nil {
			s.t.Error(err)
		}
	}
}

// start delivers in the background and returns a channel that is closed afterwards.
func (s *shop) start(element string) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.one(observation.Accepted, element)
	}()
	return done
}

// standStill waits until that many sessions wait for a lock, or done is closed.
func (s *shop) standStill(sessions int, done <-chan struct{}) {
	s.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(30 * time.Second); ; {
		if scan[int](s, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) >= sessions {
			return
		}
		select {
		case <-done:
			return
		case <-deadline:
			s.t.Fatalf("%d sessions never stood still", sessions)
		case <-tick.C:
		}
	}
}

// TestACategoryChangesWhileAnItemIsWritten stops the item's transaction between its nodes and its commit.
func TestACategoryChangesWhileAnItemIsWritten(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.runJobs()
	s.deliver(product("p", 1, "t"), category("c", 1, "old"))
	release := s.hold("p")
	item := s.start(product("p", 2, "t", "c"))
	s.standStill(1, item)
	change := s.start(category("c", 2, "new"))
	s.standStill(2, change)
	release()
	<-item
	<-change
	s.settled()
	if got := s.nameOf("p"); got != "new" {
		t.Errorf("the item is served with %q", got)
	}
}

// TestAnItemIsWrittenWhileACategoryChanges stops the category's transaction between its node and its commit.
func TestAnItemIsWrittenWhileACategoryChanges(t *testing.T) {
	t.Parallel()
	s := newShop(t) // without jobs: nothing follows
	s.deliver(product("p", 1, "t"), product("other", 1, "t"), category("c", 1, "old"))
	release := s.hold("other")
	change := make(chan struct{})
	go func() {
		defer close(change)
		s.deliver(category("c", 2, "new"), product("other", 2, "t"))
	}()
	s.standStill(1, change)
	item := s.start(product("p", 2, "t", "c"))
	s.standStill(2, item)
	release()
	<-change
	<-item
	if got := s.nameOf("p"); got != "new" {
		t.Errorf("the item is served with %q", got)
	}
}

// TestARecompositionMeetsAnItemsChange stops a recomposition and an item's change at one item.
func TestARecompositionMeetsAnItemsChange(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.deliver(product("p", 1, "t", "c"), category("c", 1, "old"))
	s.one(observation.Accepted, category("c", 2, "new"))
	release := s.hold("p")
	item := s.start(product("p", 2, "later", "c"))
	s.standStill(1, item)
	recomposed := make(chan error, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		recomposed <- s.catalog.Recompose(context.Background(), s.source.ConnectionID,
			[]catalog.TaxonomyID{catalog.NewTaxonomyID(s.source.ConnectionID, "c")})
	}()
	s.standStill(2, done)
	release()
	<-item
	<-done
	if err := <-recomposed; err != nil {
		t.Error(err)
	}
	v := s.served("p")
	if title, _, revision := titleOf(t, v.Body); title != "later" || s.nameOf("p") != "new" ||
		revision != v.Revision || v.Revision < 2 || v.Revision > 3 {
		t.Errorf("revision %d: %s", v.Revision, v.Body)
	}
	// Recomposing again changes nothing.
	items := []ident.ItemID{catalog.NewItemID(s.source.ConnectionID, "p")}
	if err := s.catalog.Recompose(t.Context(), s.source.ConnectionID,
		[]catalog.TaxonomyID{catalog.NewTaxonomyID(s.source.ConnectionID, "c")}); err != nil {
		t.Error(err)
	}
	if got, err := s.catalog.ServedItems(t.Context(), s.source.ConnectionID, items); err != nil ||
		len(got) != 1 || got[0].RefreshRevision != v.Revision {
		t.Errorf("%+v, %v", got, err)
	}
}
