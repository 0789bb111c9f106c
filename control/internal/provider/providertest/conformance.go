package providertest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"storefront.internal/control/internal/provider"
	"storefront.internal/shared/catalog"
)

// Conformance tests what the rest of control relies on.
func Conformance(t *testing.T, open Open) {
	for name, test := range map[string]func(*testing.T, Open){
		"signature":      testSignature,
		"topic":          testTopic,
		"fetch":          testFetch,
		"gone":           testGone,
		"strange ids":    testStrangeIDs,
		"listing":        testListing,
		"moving listing": testMovingListing,
		"since":          testSince,
		"empty listing":  testEmptyListing,
		"broken cursor":  testBrokenCursor,
		"categories":     testCategories,
		"orders":         testOrders,
		"profile":        testProfile,
		"subscriptions":  testSubscriptions,
		"faults":         testFaults,
		"throttled shop": testThrottledShop,
		"hang":           testHang,
		"cancelled":      testCancelled,
		"more elements":  testMoreElements,
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); test(t, open) })
	}
}

// callTimeout is long: only a failing test reaches it.
const callTimeout = 30 * time.Second

func count(n int64) *int64 { return &n }

func shirt(id string) Product {
	return Product{ID: id, Title: "Shirt " + id, Price: "1500.50", Sale: "1200.00", Stock: count(3),
		UpdatedAt: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
}

func testFetch(t *testing.T, open Open) {
	s := open(t, Client(t, callTimeout))
	s.Data.PutProduct(shirt("1001"))
	s.Data.PutProduct(Product{ID: "1002", Title: "Open price",
		UpdatedAt: time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)})
	f, err := s.Adapter.Fetch(t.Context(), s.Shop, catalog.Product, "1001")
	if err != nil {
		t.Fatal(err)
	}
	a := aggregate(t, f)
	v := a.Variants[0]
	if a.Item.Title[s.Shop.Profile.Language] != "Shirt 1001" || a.Item.Status != catalog.Active ||
		len(a.Variants) != 1 ||
		v.Price == nil || *v.Price != (catalog.Money{Amount: "1500.50", Currency: s.Shop.Profile.Currency}) ||
		v.PromotionalPrice == nil || v.PromotionalPrice.Amount != "1200.00" {
		t.Errorf("document: %+v", a)
	}
	if q := a.Availability[0].Quantity; q == nil || *q != 3 || a.Availability[0].Sellable == "" {
		t.Errorf("availability: %+v", a.Availability)
	}
	if !f.SourceUpdatedAt.Equal(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)) ||
		a.Item.SourceVersion != "2026-03-01T12:00:00Z" {
		t.Errorf("source: %v, %q", f.SourceUpdatedAt, a.Item.SourceVersion)
	}
	f, err = s.Adapter.Fetch(t.Context(), s.Shop, catalog.Product, "1002")
	if err != nil {
		t.Fatal(err)
	}
	if a := aggregate(t, f); a.Variants[0].Price != nil || a.Variants[0].PromotionalPrice != nil ||
		a.Availability[0].Quantity != nil {
		t.Errorf("what was not said: %+v, %+v", a.Variants[0], a.Availability[0])
	}
}

// aggregate returns the document of a product as it would be stored.
func aggregate(t *testing.T, f provider.Fetched) *catalog.CatalogAggregate {
	t.Helper()
	if f.Gone || f.Document == nil || f.Entity != catalog.Product {
		t.Fatalf("no product: %s gone %v malformed %v", f.ExternalID, f.Gone, f.Malformed)
	}
	values := json.NewDecoder(strings.NewReader(string(f.Raw)))
	n := 0
	for ; values.More(); n++ {
		var any json.RawMessage
		if err := values.Decode(&any); err != nil {
			t.Fatalf("raw: %v", err)
		}
	}
	if n == 0 || f.RawFormat == provider.JSON && n != 1 || f.RawFormat == "" {
		t.Fatalf("raw: %d values in form %q", n, f.RawFormat)
	}
	stored := catalog.Complete(f.Document,
		catalog.Identity{ConnectionID: "con_1", StoreID: "str_1", ExternalID: f.ExternalID, Revision: 7})
	d, err := catalog.Decode(catalog.Product, stored)
	if err != nil {
		t.Fatal(err)
	}
	if _, violation := catalog.ReadDocument(catalog.Product, stored); violation != nil {
		t.Fatalf("the document breaks a rule: %v", violation)
	}
	return d.(*catalog.CatalogAggregate)
}

func testGone(t *testing.T, open Open) {
	s := open(t, Client(t, callTimeout))
	s.Data.PutProduct(shirt("1001"))
	s.Data.DeleteProduct("1001")
	for _, e := range catalog.Entities() {
		f, err := s.Adapter.Fetch(t.Context(), s.Shop, e, "1001")
		if err != nil || !f.Gone || f.Document != nil || f.ExternalID != "1001" {
			t.Errorf("%s: %+v, %v", e, f, err)
		}
	}
	// A 404 that does not come from the API deletes nothing.
	s.Data.PutProduct(shirt("1002"))
	s.SetFault(Fault{Status: 404, Header: map[string]string{"Content-Type": "text/html"},
		Body: "<h1>Not Found</h1>"})
	if f, err := s.Adapter.Fetch(t.Context(), s.Shop, catalog.Product, "1002"); err == nil || f.Gone {
		t.Errorf("a page of HTML: gone %v, %v", f.Gone, err)
	}
}

func testStrangeIDs(t *testing.T, open Open) {
	s := open(t, Client(t, callTimeout))
	for _, id := range []string{"", "..", "../../webhooks", "1?fields=id", "1/../2", "1%2f2", "-1", "1e3",
		"x\r\ny", "gid://shopify/Product/1", strings.Repeat("9", 600), `1") { id } evil: product(id: "2`} {
		f, err := s.Adapter.Fetch(t.Context(), s.Shop, catalog.Product, id)
		if f.Document != nil || err == nil && !f.Gone {
			t.Errorf("%q: %+v, %v", id, f, err)
		}
		if err := s.Adapter.Unsubscribe(t.Context(), s.Shop, id); err != nil {
			t.Errorf("unsubscribe %q: %v", id, err)
		}
	}
}

const many = 437

func fill(s *Subject) {
	for i := range many {
		s.Data.PutProduct(shirt(strconv.Itoa(1000 + i)))
	}
}

func testListing(t *testing.T, open Open) {
	s := open(t, Client(t, callTimeout))
	fill(s)
	all := All(t, s, catalog.Product, time.Time{}, nil)
	if len(all) != many {
		t.Errorf("%d products, want %d", len(all), many)
	}
	for id, f := range all {
		if a := aggregate(t, f); a.Item.Title[s.Shop.Profile.Language] != "Shirt "+id ||
			!strings.Contains(string(f.Raw), "Shirt "+id) {
			t.Errorf("%s: %v", id, a.Item.Title)
		}
	}
}

// testMovingListing deletes entities that were read already, which moves the rest towards the start.
func testMovingListing(t *testing.T, open Open) {
	s := open(t, Client(t, callTimeout))
	fill(s)
	all := All(t, s, catalog.Product, time.Time{},
		func(page int) { s.Data.DeleteProduct(strconv.Itoa(1000 + page)) })
	for i := range many {
		if _, ok := all[strconv.Itoa(1000+i)]; !ok && i > 20 {
			t.Errorf("product %d was never seen", 1000+i)
		}
	}
}

func testSince(t *testing.T, open Open) {
	s := open(t, Client(t, callTimeout))
	fill(s)
	late := shirt("9000")
	late.UpdatedAt = late.UpdatedAt.Add(time.Hour)
	s.Data.PutProduct(late)
	all := All(t, s, catalog.Product, late.UpdatedAt.Add(-time.Minute), nil)
	if _, ok := all["9000"]; !ok || len(all) != 1 {
		t.Errorf("%d products since, want 1", len(all))
	}
}

func testEmptyListing(t *testing.T, open Open) {
	s := open(t, Client(t, callTimeout))
	for _, e := range catalog.Entities() {
		if all := All(t, s, e, time.Time{}, nil); len(all) != 0 {
			t.Errorf("%s: %v", e, all)
		}
	}
}

func testBrokenCursor(t *testing.T, open Open) {
	s := open(t, Client(t, callTimeout))
	for _, c := range []provider.Cursor{"nonsense", "page:-1:5", "after:x", ":::", "\x00",
		"page:1:999999999"} {
		_, err := s.Adapter.Page(t.Context(), s.Shop, catalog.Product, time.Time{}, c)
		var rejected *provider.RequestRejected
		if !errors.As(err, &rejected) {
			t.Errorf("%q: %v", c, err)
		}
	}
}

func testCategories(t *testing.T, open Open) {
	s := open(t, Client(t, callTimeout))
	s.Data.PutCategory("10", "Clothes", "")
	s.Data.PutCategory("11", "Shirts", "10")
	all := All(t, s, catalog.Category, time.Time{}, nil)
	if len(all) != 2 {
		t.Fatalf("%d categories", len(all))
	}
	single, err := s.Adapter.Fetch(t.Context(), s.Shop, catalog.Category, "11")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []provider.Fetched{all["11"], single} {
		d, ok := f.Document.(*catalog.TaxonomyNodeDocument)
		if !ok || d.Name[s.Shop.Profile.Language] != "Shirts" || d.ParentExternalID != "" &&
			d.ParentExternalID != "10" {
			t.Errorf("category: %+v", f)
		}
	}
}

func testOrders(t *testing.T, open Open) {
	s := open(t, Client(t, callTimeout))
	s.Data.PutOrder("77", "1001", "3000.00", Buyer)
	f, err := s.Adapter.Fetch(t.Context(), s.Shop, catalog.Order, "77")
	if err != nil {
		t.Fatal(err)
	}
	d, ok := f.Document.(*catalog.OrderDocument)
	if !ok || d.Total.Amount != "3000.00" || len(d.Lines) != 1 || d.Lines[0].ItemExternalID != "1001" ||
		d.Lines[0].Quantity < 1 || d.Status == "" {
		t.Fatalf("order: %v %v", f.Document, f.Malformed)
	}
	if !strings.Contains(string(d.Buyer), Buyer) {
		t.Error("the buyer is lost")
	}
	if printed := fmt.Sprintf("%v %+v", f.Document, f.Document); strings.Contains(printed, Buyer) {
		t.Errorf("an order prints its buyer: %s", printed)
	}
	if all := All(t, s, catalog.Order, time.Time{}, nil); len(all) != 1 || all["77"].Document == nil {
		t.Errorf("listing: %d orders", len(all))
	}
}

func testProfile(t *testing.T, open Open) {
	s := open(t, Client(t, callTimeout))
	bare := s.Shop
	bare.Profile.Language, bare.Profile.Currency = "", ""
	p, err := s.Adapter.Profile(t.Context(), bare)
	if err != nil || p.Currency != s.Shop.Profile.Currency || p.Language != s.Shop.Profile.Language {
		t.Errorf("profile: %+v, %v", p, err)
	}
}
