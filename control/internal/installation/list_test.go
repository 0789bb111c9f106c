package installation_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"storefront.internal/control/internal/installation"
	"storefront.internal/shared/ident"
)

// Pages of connections are disjoint and complete, and each filter selects.
func TestConnectionsAreListedPageByPage(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	installed := b.install("app")
	for i := range 7 {
		b.exec(fmt.Sprintf(`INSERT INTO control.connections (connection_id, store_id, provider, external_store_id, state)
			VALUES ('con_zz%d', 'str_zz%d', 'custom', 'shop-%d', '%s')`, i, i, i,
			[]string{"active", "suspended"}[i%2]))
	}
	list := func(q installation.Query) (ids []string, views []installation.View) {
		t.Helper()
		views, err := b.service.Connections(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range views {
			ids = append(ids, string(v.ConnectionID))
		}
		return ids, views
	}
	all, views := list(installation.Query{Limit: 100})
	if len(all) != 8 || !slices.IsSorted(all) || all[0] != string(installed.ConnectionID) {
		t.Fatalf("all: %v", all)
	}
	if v := views[0]; v.Provider != "stub" || v.Installation == nil ||
		v.Installation.ID != installed.InstallationID || views[1].Installation != nil {
		t.Errorf("%+v, %+v", v, views[1])
	}
	var paged []string
	for after := ident.ConnectionID(""); ; {
		page, _ := list(installation.Query{After: after, Limit: 3})
		if len(page) == 0 {
			break
		}
		paged, after = append(paged, page...), ident.ConnectionID(page[len(page)-1])
	}
	if !slices.Equal(paged, all) {
		t.Errorf("pages: %v, want %v", paged, all)
	}
	for want, q := range map[string]installation.Query{
		string(installed.ConnectionID): {Providers: []string{"stub"}, Limit: 9},
		"con_zz1 con_zz3 con_zz5":      {Providers: []string{"custom", "none"}, State: "suspended", Limit: 9},
		"con_zz4":                      {ExternalStoreID: "shop-4", Limit: 9},
		"":                             {ExternalStoreID: "shop-4", State: "suspended", Limit: 9},
	} {
		if ids, _ := list(q); strings.Join(ids, " ") != want {
			t.Errorf("%+v: %v, want %s", q, ids, want)
		}
	}
}
