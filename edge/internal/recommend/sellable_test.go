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

// shelf is a fake store of sellable items.
type shelf struct {
	mu    sync.Mutex
	items []ident.ItemID
	err   error
	hangs bool
	asked int
}

func (s *shelf) Sellable(ctx context.Context, _ ident.ConnectionID, most int) ([]ident.ItemID, error) {
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

func TestSellables(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &shelf{}
		for i := range 60 {
			store.items = append(store.items, ident.ItemID(fmt.Sprint("itm_", i)))
		}
		s := NewSellables(store, time.Now)
		expect := func(c ident.ConnectionID, limit, want, asked int) {
			t.Helper()
			picks, err := s.Picks(t.Context(), c, limit)
			if err != nil || len(picks) != want || want > 0 && picks[want-1].ItemID != store.items[want-1] || store.asked != asked {
				t.Fatalf("%v, %v after %d questions", picks, err, store.asked)
			}
		}
		expect("con_1", 10, 10, 1)
		expect("con_1", 50, 50, 1)
		expect("con_2", 1, 1, 2)
		time.Sleep(sellableLife)
		store.items = store.items[:3]
		expect("con_1", 10, 3, 3)
		time.Sleep(sellableLife)
		store.err = errors.New("down")
		expect("con_1", 10, 3, 4) // the last list that was had
		expect("con_1", 10, 3, 4)
		if _, err := s.Picks(t.Context(), "con_3", 10); err == nil || store.asked != 5 {
			t.Error("no list and no error")
		}
		if _, err := s.Picks(t.Context(), "con_3", 10); err == nil || store.asked != 5 {
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
				if picks, err := s.Picks(t.Context(), "con_3", 10); err != nil || len(picks) != 3 {
					t.Errorf("%v, %v", picks, err)
				}
			})
		}
		wg.Wait()
		expect("con_3", 1, 1, 7)
	})
}

func TestSellablesAreBounded(t *testing.T) {
	t.Parallel()
	s := NewSellables(&shelf{}, time.Now)
	for i := range maxConnections + 10 {
		s.remember(ident.ConnectionID(fmt.Sprint("con_", i)), nil, nil)
	}
	if len(s.lists) != maxConnections {
		t.Errorf("%d connections", len(s.lists))
	}
}

// only knows one item.
type only struct{ item ident.ItemID }

func (o only) Belong(_ context.Context, _ ident.ConnectionID, items []ident.ItemID) []bool {
	belong := make([]bool, len(items))
	for i, item := range items {
		belong[i] = item == o.item
	}
	return belong
}

func TestItemsOfOthersAreLeftOut(t *testing.T) {
	t.Parallel()
	picks := []Pick{{ItemID: "itm_x"}, {ItemID: "itm_1", VariantID: "var_1"}, {ItemID: "itm_y"}, {ItemID: "itm_1"}}
	e := &engine{do: func(context.Context) (Proposal, error) { return Proposal{Picks: picks}, nil }}
	s, rec, _ := newService(Config{Engine: e, Catalog: only{"itm_1"}})
	answer, err := ask(t, s, `{"placement":"home","limit":2}`)
	if err != nil || len(answer.Items) != 2 || answer.Items[0].VariantID != "var_1" || answer.Items[1].Position != 1 || answer.Items[1].ItemID != "itm_1" || answer.Source != "engine" {
		t.Errorf("%+v, %v", answer, err)
	}
	if len(rec.got) != 1 || len(rec.got[0].Items) != 2 {
		t.Errorf("recorded %+v", rec.got)
	}
	if len(picks) != 4 || picks[0].ItemID != "itm_x" {
		t.Error("the engine's answer was changed")
	}
}

func TestAnEngineThatKnowsOnlyOthersItemsHasFailed(t *testing.T) {
	t.Parallel()
	var picks []Pick
	e := &engine{do: func(context.Context) (Proposal, error) {
		return Proposal{Picks: picks, EngineIDs: []byte(`{"a":1}`)}, nil
	}}
	s, rec, _ := newService(Config{Engine: e, Catalog: only{"itm_1"}, Fallback: NewSellables(&shelf{}, time.Now)})
	f := func(source string, engineIDs bool, proposed ...Pick) {
		t.Helper()
		picks = proposed
		answer, err := ask(t, s, `{"placement":"home","limit":2}`)
		if err != nil || answer.Source != source {
			t.Errorf("%+v, %v; want source %s", answer, err, source)
		}
		if last := rec.got[len(rec.got)-1]; (last.EngineIDs != nil) != engineIDs {
			t.Errorf("recorded engine's ids %s", last.EngineIDs)
		}
	}
	f("engine", true, Pick{ItemID: "itm_1"})
	f("fallback", false, Pick{ItemID: "itm_x"}, Pick{ItemID: "itm_y"})
	f("engine", true) // nothing to recommend is an answer
}
