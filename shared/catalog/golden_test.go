package catalog

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

func example() Identity {
	return Identity{ConnectionID: "con_1", StoreID: "str_1", ExternalID: "p1", Revision: 7}
}

func read(t *testing.T, e Entity, text string) Document {
	t.Helper()
	d, violation := ReadDocument(e, []byte(text))
	if violation != nil {
		t.Fatalf("%s: %v", e, violation)
	}
	return d
}

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s changed:\n%s", file, got)
	}
}

// The golden files fix the canonical bytes, and so the digests, of all releases: a document that is delivered
// again after an upgrade is a duplicate and not a conflict.
func TestGolden(t *testing.T) {
	f := func(e Entity, text, digest string) {
		t.Helper()
		canonical := Complete(read(t, e, text), example())
		golden(t, "testdata/"+string(e)+".golden.json", canonical)
		if got := Digest(canonical); got != digest {
			t.Errorf("%s: digest %s", e, got)
		}
		d, err := Decode(e, canonical)
		if err != nil {
			t.Fatal(err)
		}
		var w writer
		if d.write(&w); !bytes.Equal(w.b, canonical) {
			t.Errorf("%s decoded and written again:\n%s", e, w.b)
		}
		// Names, order and omissions are those of the struct tags, which other readers use.
		if tagged := marshal(t, d); !bytes.Equal(tagged, canonical) {
			t.Errorf("%s by its tags:\n%s", e, tagged)
		}
	}
	f(Product, soundProduct, "sha256:98594ae9e63f6ecd1f7553e9deb97d690e678cb637ba1e30faabe3383e730fc5")
	f(Category, fullCategory, "sha256:397fd97d1d54ded3715d10981a15fc077db4b7d089d1e7c327df0d263b78c56d")
	f(Order, soundOrder, "sha256:d2589d8df0e782797eff9a1c5a2fc8cb369a31ce2bceb36847cc3f60ff88c60c")
	if got := Digest(nil); got != "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" {
		t.Errorf("digest of a delete: %s", got)
	}
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

func TestCompose(t *testing.T) {
	canonical := Complete(read(t, Product, soundProduct), example())
	decoded, err := Decode(Product, canonical)
	if err != nil {
		t.Fatal(err)
	}
	stored := decoded.(*CatalogAggregate)
	category := read(t, Category, fullCategory).(*TaxonomyNodeDocument)
	Complete(category, Identity{ConnectionID: "con_1", StoreID: "str_1", ExternalID: "c2", Revision: 1})

	known := map[TaxonomyID]*TaxonomyNodeDocument{category.TaxonomyID: category, "tax_other": {}}
	golden(t, "testdata/item.golden.json", Compose(stored, 9, known))

	unknown := Compose(stored, 7, nil)
	if !bytes.Equal(unknown, canonical) {
		t.Errorf("with no category known the aggregate is as delivered:\n%s", unknown)
	}
	again, err := Decode(Product, canonical)
	if err != nil || !reflect.DeepEqual(stored, again) {
		t.Errorf("the stored aggregate was changed: %v", err)
	}
	// A category that lost its handles and its parent takes them from the item too.
	bare := &TaxonomyNodeDocument{Name: LocalizedText{"es": "Otra"}}
	body := Compose(stored, 7, map[TaxonomyID]*TaxonomyNodeDocument{NewTaxonomyID("con_1", "c1"): bare})
	var a CatalogAggregate
	if err := json.Unmarshal(body, &a); err != nil {
		t.Fatal(err)
	}
	if got := a.Item.Taxonomy[0]; got.Name["es"] != "Otra" || got.Handles != nil || got.ParentID != "" ||
		got.ExternalID != "c1" {
		t.Errorf("taxonomy %+v", got)
	}
}

func TestCompletion(t *testing.T) {
	a := read(t, Product, soundProduct).(*CatalogAggregate)
	a.Item.Taxonomy[1].ParentExternalID = "c1" // as an adapter builds it
	Complete(a, example())
	if a.Item.ItemID != NewItemID("con_1", "p1") || a.Item.StoreID != "str_1" ||
		a.Item.ConnectionID != "con_1" ||
		a.Item.ExternalID != "p1" || a.RefreshRevision != 7 ||
		string(a.Item.ItemID) != Product.ID("con_1", "p1") {
		t.Errorf("item %+v", a.Item)
	}
	if a.Variants[1].VariantID != NewVariantID("con_1", "p1", "v2") ||
		a.Variants[1].ItemID != a.Item.ItemID ||
		a.Availability[0].VariantID != a.Variants[1].VariantID ||
		a.Availability[1].VariantID != a.Variants[0].VariantID {
		t.Errorf("variants %+v availability %+v", a.Variants, a.Availability)
	}
	if node := a.Item.Taxonomy; node[0].TaxonomyID != NewTaxonomyID("con_1", "c1") ||
		node[1].ParentID != node[0].TaxonomyID || node[0].ParentID != "" {
		t.Errorf("taxonomy %+v", node)
	}
	if q := a.Availability[0].Quantity; q == nil || *q != 0 || a.Availability[1].Quantity != nil {
		t.Error("a quantity of 0 and an absent one are not the same")
	}
	o := read(t, Order, soundOrder).(*OrderDocument)
	Complete(o, example())
	if string(o.OrderID) != Order.ID("con_1", "p1") || o.Lines[0].ItemID != a.Item.ItemID ||
		o.Lines[0].VariantID != a.Variants[0].VariantID ||
		o.Lines[1].VariantID != "" || o.Number != "1001" {
		t.Error("the order's ids are not those of the product")
	}
	c := read(t, Category, fullCategory).(*TaxonomyNodeDocument)
	Complete(c, example())
	if string(c.TaxonomyID) != Category.ID("con_1", "p1") || c.ParentID != a.Item.Taxonomy[0].TaxonomyID {
		t.Errorf("category %+v", c)
	}
}

// Our ids and refresh_revision are ignored when sent, unknown members are dropped, null counts as absent.
func TestIgnoredMembers(t *testing.T) {
	plain := `{"item":{"title":{"es":"a"},"status":"draft"},"variants":[{"external_id":"v"}],"availability":[{"variant_external_id":"v"}]}`
	noisy := `{"refresh_revision":"x","extra":[{}],"item":{"item_id":5,"store_id":"str_9","connection_id":[],"external_id":"other",
		"title":{"es":"a","en":null},"status":"draft","brand":null,"tags":null,"free_shipping":null,"primary_media":null,"Brand":"x","urls":null},
		"variants":[{"variant_id":"var_x","item_id":{},"external_id":"v","price":null,"status":null,"attributes":null}],
		"availability":[{"variant_id":"var_y","variant_external_id":"v","quantity":null,"as_of":null,"sellable":null}]}`
	want, got := Complete(read(t, Product, plain), example()), Complete(read(t, Product, noisy), example())
	if !bytes.Equal(got, want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if s := string(want); strings.Contains(s, "null") || strings.Contains(s, "quantity") ||
		!strings.Contains(s, `"refresh_revision":7`) {
		t.Errorf("%s", s)
	}
	empty := Complete(read(t, Product,
		change(t, plain, `"status":"draft"`, `"status":"draft","tags":[],"media":[]`)), example())
	if !strings.Contains(string(empty), `"media":[],"tags":[]`) {
		t.Errorf("an empty list says none: %s", empty)
	}
}

func TestDecodeFails(t *testing.T) {
	_, err := Decode(Order, []byte(`{"placed_at":"ana@example.com"}`))
	if err == nil || strings.Contains(err.Error(), "ana") {
		t.Errorf("%v", err)
	}
}

func TestTimesAreWrittenInUTC(t *testing.T) {
	var w writer
	w.time("t", time.Date(2026, 1, 2, 3, 4, 5, 678000, time.FixedZone("", 3600)))
	if got := string(w.b); got != `"t":"2026-01-02T02:04:05.000678Z"` {
		t.Error(got)
	}
}

func TestEnums(t *testing.T) {
	for _, e := range Entities() {
		if got, ok := ParseEntity(string(e)); !ok || got != e {
			t.Errorf("entity %s", e)
		}
	}
	if _, ok := ParseEntity("Product"); ok {
		t.Error("names match exactly")
	}
	if o, ok := ParseOperation("delete"); !ok || o != Delete {
		t.Error("operation delete")
	}
	if _, ok := ParseOperation(""); ok {
		t.Error("no operation")
	}
}
