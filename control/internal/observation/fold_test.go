package observation

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"storefront.internal/shared/catalog"
	"storefront.internal/shared/ident"
)

// drawn is a random element of the model. Its numbers are small, so that elements collide.
type drawn struct {
	Entity   catalog.Entity
	External string
	Revision int64
	Content  int // 0 deletes, 9 is quarantined
}

func draw(t *rapid.T, i int) drawn {
	name := fmt.Sprintf("element %d", i)
	return drawn{
		rapid.SampledFrom(catalog.Entities()).Draw(t, name+" entity"),
		rapid.SampledFrom([]string{"a", "b"}).Draw(t, name+" id"),
		rapid.Int64Range(1, 4).Draw(t, name+" revision"), rapid.SampledFrom([]int{0, 1, 2, 9}).Draw(t,
			name+" content"),
	}
}

func (d drawn) text() []byte {
	switch d.Content {
	case 0:
		return fmt.Appendf(nil, `{"entity":%q,"external_id":%q,"revision":%d,"operation":"delete"}`, d.Entity,
			d.External, d.Revision)
	case 9:
		return fmt.Appendf(nil, `{"entity":%q,"external_id":%q,"revision":%d}`, d.Entity,
			d.External, d.Revision)
	}
	document := map[catalog.Entity]string{
		catalog.Product:  `{"item":{"title":{"en":"%d"},"status":"active","taxonomy":[{"external_id":"a"},{"external_id":"b"},{"external_id":"a"}]},"variants":[{"external_id":"v"}]}`,
		catalog.Category: `{"name":{"en":"%d"}}`,
		catalog.Order:    `{"status":"%d","currency":"EUR","total":{"amount":"1","currency":"EUR"},"lines":[],"placed_at":"2026-01-01T00:00:00Z"}`,
	}[d.Entity]
	return fmt.Appendf(nil, `{"entity":%q,"external_id":%q,"revision":%d,"document":`+document+`}`, d.Entity,
		d.External, d.Revision, d.Content)
}

// TestFoldIsTheSameInAnySplit folds random elements in one batch and one by one, and compares both with a
// model that knows only what was accepted last.
func TestFoldIsTheSameInAnySplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		source := Source{ConnectionID: "con_1", StoreID: "str_1", Provider: ProviderCustom}
		batch := &Batch{Source: source, At: time.Now(),
			kept: rapid.SampledFrom([]int{0, PartBytes}).Draw(t, "bytes of documents that are kept")}
		var all []drawn
		for i := range rapid.IntRange(1, 12).Draw(t, "elements") {
			d := draw(t, i)
			all = append(all, d)
			batch.add(new(catalog.Reader).Read(d.text(), source.ConnectionID, source.StoreID), d.text())
		}
		one, single := map[Key]Applied{}, map[Key]Applied{}
		outcomes := batch.Fold(one)
		model := map[Key]drawn{}
		refreshed := map[string]int64{}
		for i, d := range all {
			alone := &Batch{Source: source, At: batch.At, Elements: batch.Elements[i : i+1]}
			if got := alone.Fold(single)[0]; got != outcomes[i] {
				t.Fatalf("element %d: alone %+v, in the batch %+v", i, got, outcomes[i])
			}
			key := Key{d.Entity, d.External}
			last, there := model[key]
			want := Accepted
			switch {
			case d.Content == 9:
				want = Quarantined
			case !there || d.Revision > last.Revision:
				model[key] = d
				if d.Entity == catalog.Product {
					refreshed[d.External]++
				}
			case d.Revision < last.Revision:
				want = Stale
			case d.Content == last.Content:
				want = Duplicate
			default:
				want = Conflict
			}
			if outcomes[i].Status != want {
				t.Fatalf("element %d %+v after %+v: %s, want %s", i, d, last, outcomes[i].Status, want)
			}
		}
		checkEffects(t, batch, outcomes, refreshed)
	})
}

func checkEffects(t *rapid.T, b *Batch, outcomes []Outcome, refreshed map[string]int64) {
	plan := b.Plan(outcomes)
	known := catalog.NewTaxonomyID("con_1", "b")
	locked := Locked{Nodes: map[catalog.TaxonomyID][]byte{}, Items: map[ident.ItemID]LockedItem{}}
	for _, item := range plan.Items() {
		locked.Items[item] = LockedItem{RefreshRevision: 100, TaxonomyIDs: []catalog.TaxonomyID{known}}
	}
	effects, err := plan.Effects(locked)
	if err != nil {
		t.Fatal(err)
	}
	if len(effects.Aggregates) != len(refreshed) {
		t.Fatalf("%d items change, want %d", len(effects.Aggregates), len(refreshed))
	}
	for _, a := range effects.Aggregates {
		var body catalog.CatalogAggregate
		document, composed, err := a.Documents()
		if err != nil || (document == nil) != (composed == nil) {
			t.Fatalf("%s, %s, %v", document, composed, err)
		}
		if composed != nil {
			if err := json.Unmarshal(composed, &body); err != nil ||
				body.RefreshRevision != a.RefreshRevision || len(a.TaxonomyIDs) != 2 || !a.Sellable {
				t.Fatalf("%+v, %v", a, err)
			}
		}
		want := int64(0)
		for external, n := range refreshed {
			if a.ItemID == catalog.NewItemID("con_1", external) {
				want = 100 + n
			}
		}
		ties, unties := 0, 0
		if composed != nil {
			ties = 1
		} else {
			unties = 1
		}
		count := func(links []Link) (n int) {
			for _, l := range links {
				if l.ItemID == a.ItemID {
					n++
				}
			}
			return n
		}
		if a.RefreshRevision != want || count(effects.AddLinks) != ties ||
			count(effects.RemoveLinks) != unties {
			t.Fatalf("%s: revision %d, want %d; tied %v, untied %v", a.ItemID, a.RefreshRevision, want,
				effects.AddLinks, effects.RemoveLinks)
		}
	}
	if !slices.IsSorted(plan.Nodes()) {
		t.Fatal("nodes are not in the order of the locks")
	}
}

func TestSellable(t *testing.T) {
	t.Parallel()
	f := func(status catalog.Status, want bool, variants ...catalog.Status) {
		t.Helper()
		a := &catalog.CatalogAggregate{Item: catalog.Item{Status: status}}
		for _, v := range variants {
			a.Variants = append(a.Variants, catalog.Variant{Status: v})
		}
		if catalog.CompleteDocument(a, catalog.Identity{}).Sellable != want {
			t.Errorf("%s with %v", status, variants)
		}
	}
	f(catalog.Active, true, "")
	f(catalog.Active, true, catalog.Hidden, catalog.Active)
	f(catalog.Active, false, catalog.Hidden)
	f(catalog.Active, false)
	f(catalog.Draft, false, catalog.Active)
	f(catalog.Hidden, false, catalog.Active)
}
