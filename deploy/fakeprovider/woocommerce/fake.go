// Package woocommerce is a fake of the WooCommerce REST API, version 3: one language, products whose variations are documents of their
// own, lists in numbered pages, webhooks with a secret each that are pinged when they are made, delivered once and disabled after
// failures. There is no topic for categories and no rate limit, as in the provider's core. It keeps no rule of ours.
package woocommerce

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"storefront.internal/deploy/fakeprovider/bucket"
	"storefront.internal/deploy/fakeprovider/catalogue"
	"storefront.internal/deploy/fakeprovider/docs"
	"storefront.internal/deploy/fakeprovider/hooks"
	"storefront.internal/deploy/fakeprovider/stores"
)

// Currency of every store; it is in the settings, not on a product.
const Currency = "ARS"

const variations = "variations"

// Fake is the provider.
type Fake struct {
	*stores.Keeper
	config stores.Config
	api    http.Handler
	policy hooks.Policy
}

// failuresAllowed in a row; one more disables a webhook.
const failuresAllowed = 5

// New makes the provider with its first store.
func New(c stores.Config) *Fake {
	f := &Fake{config: c}
	f.Keeper = stores.NewKeeper(c, host, f.open)
	f.api = f.Conduct.Wrap(f.routes(), func(w http.ResponseWriter, status int) { refuse(w, status, "internal_server_error") })
	f.policy = hooks.Policy{
		Timeout: 60 * time.Second,
		OK:      func(status int) bool { return status >= 200 && status <= 302 },
		Failed: func(set *hooks.Set, id int64, inARow int) {
			if inARow > failuresAllowed {
				set.Change(id, func(h *hooks.Hook) { h.Status = "disabled" })
			}
		},
	}
	return f
}

// host is the name of a store: its host, whatever it is written as.
func host(text string) string {
	text = strings.ToLower(text)
	for _, scheme := range []string{"https://", "http://"} {
		text = strings.TrimPrefix(text, scheme)
	}
	return strings.TrimSuffix(text, "/")
}

func site(store string) string { return "https://" + store }

func (f *Fake) open(id string) *stores.Store {
	source := catalogue.New(f.config.Seed+stores.Spread(id), f.config.Products)
	table := func(first, count int, make func(int64) []byte) *docs.Table {
		return docs.NewTable(docs.Base{
			First: int64(first), Count: count, Updated: source.Updated, JSON: make, Parse: parseStamp, Format: gmt,
			Stamps: []string{"date_modified_gmt"},
		})
	}
	return &stores.Store{
		ID: id, Bucket: bucket.New(1, 1, true, f.config.Now),
		Tables: map[string]*docs.Table{
			stores.Products:   table(catalogue.FirstProduct, f.config.Products, func(n int64) []byte { return f.productJSON(id, source, n) }),
			stores.Categories: table(catalogue.FirstCategory, f.config.Categories, func(n int64) []byte { return categoryJSON(source, n) }),
			stores.Orders:     table(catalogue.FirstOrder, f.config.Orders, func(n int64) []byte { return orderJSON(source, n) }),
			variations:        f.variationTable(source),
		},
	}
}

// variationTable answers every variation of the base: their ids have gaps, so that they are not among the ids that it lists.
func (f *Fake) variationTable(source *catalogue.Source) *docs.Table {
	return docs.NewTable(docs.Base{
		Updated: func(id int64) time.Time { return source.Updated(id / 100) }, JSON: func(id int64) []byte { return variationJSON(source, id) },
		Parse: parseStamp, Format: gmt, Stamps: []string{"date_modified_gmt"}, Lists: nil, Open: true,
	})
}

// ServeHTTP serves the API: /{store}/wp-json/wc/v3/….
func (f *Fake) ServeHTTP(w http.ResponseWriter, r *http.Request) { f.api.ServeHTTP(w, r) }

// Show answers a document; a product with its variations in place of their ids, so that what is shown can be put.
func (f *Fake) Show(store, kind, id string) (json.RawMessage, error) {
	doc, err := f.Keeper.Show(store, kind, id)
	if err != nil || kind != stores.Products {
		return doc, err
	}
	members, err := docs.ParseMembers(doc)
	if err != nil {
		return nil, err
	}
	found := []json.RawMessage{}
	for _, d := range f.Of(store).Tables[variations].Pick(variationIDs(doc)) {
		found = append(found, d.JSON)
	}
	members["variations"] = marshal(found)
	return marshal(members), nil
}

// Change takes a product's variations as documents or as ids.
func (f *Fake) Change(store, kind, id string, patch []byte) (created bool, err error) {
	members, err := docs.ParseMembers(patch)
	if err != nil {
		return false, err
	}
	var sent []docs.Members
	if kind != stores.Products || json.Unmarshal(members["variations"], &sent) != nil || members["variations"] == nil {
		return f.Keeper.Change(store, kind, id, patch)
	}
	owner, err := numberOf(id)
	if err != nil {
		return false, stores.ErrNotFound
	}
	ids := []int64{}
	for i, v := range sent {
		n := v.ID()
		if n == 0 {
			n = owner*100 + int64(i) + 1
		}
		if _, err := f.Of(store).Tables[variations].Change(n, marshal(v), f.config.Now()); err != nil {
			return false, err
		}
		ids = append(ids, n)
	}
	members["variations"] = marshal(ids)
	return f.Keeper.Change(store, kind, id, marshal(members))
}

func variationIDs(product []byte) []int64 {
	var p struct {
		Variations []int64 `json:"variations"`
	}
	_ = json.Unmarshal(product, &p) // none is an answer
	return slices.Clone(p.Variations)
}
