package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"storefront.internal/deploy/democonnector/connector"
	"storefront.internal/shared/catalog"
)

// Every document of the shop is valid, and the shop is the same in every run.
func TestEveryDocumentIsSound(t *testing.T) {
	t.Parallel()
	counts := map[string]int{}
	again := Observations()
	for i, o := range Observations() {
		o.Revision, again[i].Revision = 1, 1
		text, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		if second, err := json.Marshal(again[i]); err != nil || string(second) != string(text) {
			t.Fatalf("two runs differ: %s and %s (%v)", text, second, err)
		}
		read := new(catalog.Reader).Read(text, "con_1", "str_1")
		if read.Rejected != "" || read.Quarantined != nil {
			t.Fatalf("%s: %s %+v", text, read.Rejected, read.Quarantined)
		}
		decoded, err := catalog.Decode(read.Entity, read.Completed.Document)
		if err != nil {
			t.Fatal(err)
		}
		if p, ok := decoded.(*catalog.CatalogAggregate); ok {
			checkProduct(t, p)
		}
		counts[o.Entity]++
	}
	if counts[connector.Product] != 300 || counts[connector.Category] != 24 {
		t.Errorf("entities %v", counts)
	}
}

func checkProduct(t *testing.T, p *catalog.CatalogAggregate) {
	t.Helper()
	if len(p.Item.Title) != 3 || len(p.Item.Taxonomy) != 2 || len(p.Variants) == 0 ||
		len(p.Availability) != len(p.Variants) {
		t.Errorf("product %+v", p.Item)
	}
	for language, handle := range p.Item.Handles {
		if strings.ContainsFunc(handle, func(r rune) bool { return r > 'z' || r == ' ' }) {
			t.Errorf("handle %s %q is not plain", language, handle)
		}
	}
}

func TestRunReportsWhatAPersonHasToSee(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Observations []connector.Observation `json:"observations"`
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		results := make([]connector.Result, len(body.Observations))
		for i, o := range body.Observations {
			key := fmt.Sprint(o.Entity, o.ExternalID, o.Revision)
			results[i] = connector.Result{Index: i, Status: connector.Accepted,
				EntityID: "id-of-" + o.ExternalID}
			switch {
			case seen[key]:
				results[i].Status = connector.Duplicate
			case o.ExternalID == "p-1002":
				results[i].Status, results[i].Reason = connector.Quarantined, "missing /document/item/title"
			default:
				seen[key] = true
			}
		}
		if err := json.NewEncoder(w).Encode(map[string]any{"results": results}); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	book := filepath.Join(t.TempDir(), "book.json")
	for _, want := range []string{
		"323 accepted, 0 duplicate, 0 stale\nproduct p-1002: quarantined missing /document/item/title",
		"0 accepted, 323 duplicate, 0 stale\nproduct p-1002: quarantined missing /document/item/title",
	} {
		r, err := Run(context.Background(),
			connector.Config{BaseURL: server.URL, ConnectionID: "con_1", Token: "t"}, book)
		if err != nil || r.String() != want || r.FirstItem != "id-of-p-1001" {
			t.Errorf("report %q %s %v, want %q", r, r.FirstItem, err, want)
		}
	}
}
