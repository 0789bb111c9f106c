package catalog

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func readObservation(element []byte) Observation { return new(Reader).Read(element, "con_1", "str_1") }

// checkCompleted reads a document element by element, as deliver_observations does, and compares it and its
// body with those of the document that is decoded as a whole.
func checkCompleted(t failer, reader *Reader, e Entity, text, canonical []byte) {
	t.Helper()
	element := fmt.Appendf(nil, `{"external_id":"p1","entity":%q,"revision":7,"document":%s}`, e, text)
	o := reader.Read(element, "con_1", "str_1")
	if o.Quarantined != nil || o.Rejected != "" || !bytes.Equal(o.Completed.Document, canonical) {
		t.Fatalf("%v: read as an element\n%s\nas a document\n%s", o.Quarantined, o.Completed.Document,
			canonical)
		return
	}
	decoded, err := Decode(e, canonical)
	if err != nil {
		t.Fatalf("%v", err)
		return
	}
	a, product := decoded.(*CatalogAggregate)
	if product != o.Completed.Product {
		t.Fatalf("is it a product? %v, %v", product, o.Completed.Product)
	}
	if !product {
		return
	}
	categories := map[TaxonomyID]*TaxonomyNodeDocument{}
	for i := range 2 { // without a category, and with each second one
		body, err := o.Completed.Compose(9, categories)
		if want := Compose(a, 9, categories); err != nil || !bytes.Equal(body, want) {
			t.Fatalf("%d: %v: composed\n%s\nwant\n%s", i, err, body, want)
		}
		for n, id := range o.Completed.Taxonomy {
			if n%2 == 0 {
				categories[id] = &TaxonomyNodeDocument{Name: LocalizedText{"en": `n"`}, ParentID: "tax_1"}
			}
		}
	}
	sellable := a.Item.Status == Active &&
		slices.ContainsFunc(a.Variants, func(v Variant) bool { return v.Status != Hidden })
	if sellable != o.Completed.Sellable {
		t.Fatalf("sellable: %v", o.Completed.Sellable)
	}
}

func TestCompletedProduct(t *testing.T) {
	var reader Reader
	for range 2 { // the second reading uses the buffers of the first
		checkCompleted(t, &reader, Product, []byte(soundProduct),
			Complete(read(t, Product, soundProduct), example()))
	}
}

// TestManyValues reads documents that are small for their number of values.
func TestManyValues(t *testing.T) {
	f := func(name string, values int, want string) {
		t.Helper()
		text := `{"name":{"es":"x"},"more":[0` + strings.Repeat(",0", values-1) + `]}`
		_, violation := ReadDocument(Category, []byte(text))
		if got := fmt.Sprint(violation); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	const others = 7 // values and names
	f("at most", maxNodes-others, "<nil>")
	f("one more", maxNodes-others+1, "too_large")
}
