package recommend

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"storefront.internal/shared/ident"
)

// sellableStore is a fake SellableStore.
type sellableStore struct {
	mu    sync.Mutex
	items []ident.ItemID
	err   error
	hangs bool
	asked int
}

func (s *sellableStore) Sellable(ctx context.Context, _ ident.ConnectionID,
	most int) ([]ident.ItemID, error) {
	s.mu.Lock()
	s.asked++
	items, err, hangs := s.items, s.err, s.hangs
	s.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	time.Sleep(time.Millisecond)
	return items[:min(most, len(items))], err
}

func TestSellableItems(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &sellableStore{}
		for i := range 60 {
			store.items = append(store.items, ident.ItemID(fmt.Sprint("itm_", i)))
		}
		s := NewSellableItems(store, time.Now)
		expect := func(c ident.ConnectionID, limit, want, asked int) {
			t.Helper()
			items, err := s.Items(t.Context(), c, limit)
			if err != nil || len(items) != want || want > 0 && items[want-1].ItemID != store.items[want-1] ||
				store.asked != asked {
				t.Fatalf("%v, %v after %d requests", items, err, store.asked)
			}
		}
		expect("con_1", 10, 10, 1)
		expect("con_1", 50, 50, 1)
		expect("con_2", 1, 1, 2)
		time.Sleep(sellableTTL)
		store.items = store.items[:3]
		expect("con_1", 10, 3, 3)
		time.Sleep(sellableTTL)
		store.err = errors.New("down")
		expect("con_1", 10, 3, 4) // the last list that was read
		expect("con_1", 10, 3, 4)
		if _, err := s.Items(t.Context(), "con_3", 10); err == nil || store.asked != 5 {
			t.Error("no list and no error")
		}
		if _, err := s.Items(t.Context(), "con_3", 10); err == nil || store.asked != 5 {
			t.Error("asked again at once")
		}
		store.err, store.hangs = nil, true
		time.Sleep(sellableRetry)
		began := time.Now()
		expect("con_1", 10, 3, 6)
		if took := time.Since(began); took != sellableTimeout {
			t.Errorf("waited %s", took)
		}
		store.hangs = false
		time.Sleep(sellableRetry)
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if items, err := s.Items(t.Context(), "con_3", 10); err != nil || len(items) != 3 {
					t.Errorf("%v, %v", items, err)
				}
			})
		}
		wg.Wait()
		expect("con_3", 1, 1, 7)
	})
}

func TestSellableItemsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := NewSellableItems(&sellableStore{}, time.Now)
		for i := range maxConnections + 10 {
			s.load(t.Context(), ident.ConnectionID(fmt.Sprint("con_", i)))
		}
		if s.lists.Len() != maxConnections {
			t.Errorf("%d connections", s.lists.Len())
		}
	})
}

// only is a Catalog with one item.
type only struct{ item ident.ItemID }

func (o only) Owned(_ context.Context, _ ident.ConnectionID, items []ident.ItemID) []bool {
	owned := make([]bool, len(items))
	for i, item := range items {
		owned[i] = item == o.item
	}
	return owned
}

func TestItemsOfOtherConnectionsAreLeftOut(t *testing.T) {
	t.Parallel()
	items := []Item{{ItemID: "itm_x"}, {ItemID: "itm_1", VariantID: "var_1"}, {ItemID: "itm_y"},
		{ItemID: "itm_1"}}
	e := &engine{do: func(context.Context) (EngineResponse, error) {
		return EngineResponse{Items: items},
			nil
	}}
	s, rec, _ := newService(Config{Engine: e, Catalog: only{"itm_1"}})
	answer, err := ask(t, s, `{"placement":"home","limit":2}`)
	if err != nil || len(answer.Items) != 2 || answer.Items[0].VariantID != "var_1" ||
		answer.Items[1].Position != 1 || answer.Items[1].ItemID != "itm_1" || answer.Source != "engine" {
		t.Errorf("%+v, %v", answer, err)
	}
	if len(rec.got) != 1 || len(rec.got[0].Items) != 2 {
		t.Errorf("recorded %+v", rec.got)
	}
	if len(items) != 4 || items[0].ItemID != "itm_x" {
		t.Error("the engine's answer was changed")
	}
}

func TestEngineWithoutOwnedItemsHasFailed(t *testing.T) {
	t.Parallel()
	var items []Item
	e := &engine{do: func(context.Context) (EngineResponse, error) {
		return EngineResponse{Items: items, EngineIDs: []byte(`{"a":1}`)}, nil
	}}
	s, rec, _ := newService(Config{Engine: e, Catalog: only{"itm_1"},
		Fallback: NewSellableItems(&sellableStore{}, time.Now)})
	f := func(source string, engineIDs bool, proposed ...Item) {
		t.Helper()
		items = proposed
		answer, err := ask(t, s, `{"placement":"home","limit":2}`)
		if err != nil || answer.Source != source {
			t.Errorf("%+v, %v; want source %s", answer, err, source)
		}
		if last := rec.got[len(rec.got)-1]; (last.EngineIDs != nil) != engineIDs {
			t.Errorf("recorded engine's ids %s", last.EngineIDs)
		}
	}
	f("engine", true, Item{ItemID: "itm_1"})
	f("fallback", false, Item{ItemID: "itm_x"}, Item{ItemID: "itm_y"})
	f("engine", true) // nothing to recommend is an answer
}
