package catalog

import (
	"strings"
	"testing"
)

// TestCompleteWithin writes documents of about the greatest size, and one whose variants share a text.
func TestCompleteWithin(t *testing.T) {
	t.Parallel()
	id := Identity{ConnectionID: "con_1", StoreID: "str_1", ExternalID: "1", Revision: 1}
	product := func(text string, variants int) *CatalogAggregate {
		a := &CatalogAggregate{Item: Item{Status: Active}}
		shared := LocalizedText{"es": text}
		for range variants {
			a.Variants = append(a.Variants, Variant{ExternalID: "1",
				Attributes: []Attribute{{Name: shared, Value: shared}}})
		}
		return a
	}
	exact := len(Complete(product("", 1), id))
	for name, c := range map[string]struct {
		document *CatalogAggregate
		fits     bool
	}{
		"small":     {product("x", 1), true},
		"at most":   {product(strings.Repeat("x", (MaxDocument-exact)/2), 1), true},
		"one more":  {product(strings.Repeat("x", (MaxDocument-exact)/2+1), 1), false},
		"shared":    {product(strings.Repeat("x", 1<<20), 1000), false},
		"ever more": {product("x", 100_000), false},
	} {
		text, fits := CompleteWithin(c.document, id)
		if fits != c.fits || fits && string(text) != string(Complete(c.document, id)) {
			t.Errorf("%s: %d bytes, fits %v", name, len(text), fits)
		}
		if name == "shared" && len(text) > MaxDocument {
			t.Errorf("%s: %d bytes were written", name, len(text))
		}
	}
}
