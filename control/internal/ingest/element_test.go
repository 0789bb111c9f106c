package ingest_test

import (
	"testing"
	"time"

	"storefront.internal/control/internal/ingest"
	"storefront.internal/control/internal/observation"
	"storefront.internal/control/internal/provider"
	"storefront.internal/shared/catalog"
)

// A provider ends the body of one entity with a newline, and separates those of a page with a comma and a
// space. The entity is the same.
func TestSpaceAroundAnEntityIsNoChange(t *testing.T) {
	digest := func(raw string) string {
		b := ingest.NewBatch(observation.Source{}, time.Now(), []provider.Fetched{{Entity: catalog.Product,
			ExternalID: "1001", Raw: []byte(raw), Document: &catalog.CatalogAggregate{}}}, 1)
		if got := string(b.Elements[0].Raw); got != `{"id": 1001}` {
			t.Errorf("%q is archived as %q", raw, got)
		}
		return b.Elements[0].Digest
	}
	want := digest(`{"id": 1001}`)
	for _, raw := range []string{"{\"id\": 1001}\n", " {\"id\": 1001}\r\n\t"} {
		if got := digest(raw); got != want {
			t.Errorf("the digest of %q is %s, not %s", raw, got, want)
		}
	}
}
