package tiendanube

import (
	"testing"

	"storefront.internal/shared/catalog"
)

// BenchmarkRead maps a product with five variants and checks it by the catalog's rules.
func BenchmarkRead(b *testing.B) {
	span := []byte(full)
	b.ReportAllocs()
	for b.Loop() {
		if f := read(catalog.Product, span, "es", "ARS"); f.Malformed != nil {
			b.Fatal(f.Malformed)
		}
	}
}
