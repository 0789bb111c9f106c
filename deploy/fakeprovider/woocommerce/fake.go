// Package woocommerce is a fake of the WooCommerce REST API, version 3: one language, products whose
// variations are documents of their own, lists in numbered pages, and webhooks with a secret each that are
// pinged when they are made, delivered once and disabled after failures. There is no topic for categories and
// no rate limit, as in the provider's core.
//
// webhooks.go lists the topics; documents.go writes the documents.
package woocommerce

import (
	"encoding/json"
	"net/http"
	"strconv"
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

// failuresAllowed in a row; one more disables a webhook.
const failuresAllowed = 5

// Fake is the provider.
type Fake struct {
	*stores.Registry
	config stores.Config
	api    http.Handler
	policy hooks.Policy
}

// New makes the provider with its first store.
func New(c stores.Config) *Fake {
	f := &Fake{config: c}
	f.Registry = stores.NewRegistry(c, host, f.open)
	f.api = f.Faults.Wrap(
		f.routes(),
		func(w http.ResponseWriter, status int) { refuse(w, status, "internal_server_error") },
	)
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

// host is a store's name: its host, without a scheme.
func host(text string) string {
	text = strings.TrimPrefix(strings.TrimPrefix(strings.ToLower(text), "https://"), "http://")
	return strings.TrimSuffix(text, "/")
}

func site(store string) string { return "https://" + store }

func (f *Fake) open(id string) *stores.Store {
	s := f.config.Open(id, bucket.New(1, 1, true, f.config.Now), stores.Format{
		Product:  func(s *catalogue.Source, n int64) []byte { return productJSON(id, s, n) },
		Category: categoryJSON, Order: orderJSON,
		UpdatedAt: "date_modified_gmt", FormatTime: formatGMT, ParseTime: parseTime,
	})
	s.Tables[variations] = docs.NewTable(docs.Base{ // their ids have gaps, so no id is listed
		Open: true, JSON: func(id int64) []byte { return variationJSON(s.Source, id) },
		Updated:   func(id int64) time.Time { return s.Source.Updated(id / 100) },
		UpdatedAt: "date_modified_gmt", FormatTime: formatGMT, ParseTime: parseTime,
	})
	return s
}

// ServeHTTP serves /{store}/wp-json/wc/v3/….
func (f *Fake) ServeHTTP(w http.ResponseWriter, r *http.Request) { f.api.ServeHTTP(w, r) }

// Get returns a document. A product has its variations in place of their ids, so that it can be put back.
func (f *Fake) Get(store, kind, id string) (json.RawMessage, error) {
	doc, err := f.Registry.Get(store, kind, id)
	if err != nil || kind != stores.Products {
		return doc, err
	}
	members, err := docs.ParseMembers(doc)
	if err != nil {
		return nil, err
	}
	found := []json.RawMessage{}
	for _, d := range f.Store(store).Tables[variations].Pick(variationIDs(doc)) {
		found = append(found, d.JSON)
	}
	members["variations"] = stores.JSON(found)
	return stores.JSON(members), nil
}

// Patch takes a product's variations as documents or as ids.
func (f *Fake) Patch(store, kind, id string, patch []byte) (created bool, err error) {
	members, err := docs.ParseMembers(patch)
	if err != nil {
		return false, err
	}
	var sent []docs.Members
	if kind != stores.Products || members["variations"] == nil ||
		json.Unmarshal(members["variations"], &sent) != nil {
		return f.Registry.Patch(store, kind, id, patch)
	}
	product, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return false, stores.ErrNotFound
	}
	ids := []int64{}
	for i, v := range sent {
		n := v.ID()
		if n == 0 {
			n = product*100 + int64(i) + 1
		}
		if _, err := f.Store(store).Tables[variations].Patch(n, stores.JSON(v), f.config.Now()); err != nil {
			return false, err
		}
		ids = append(ids, n)
	}
	members["variations"] = stores.JSON(ids)
	return f.Registry.Patch(store, kind, id, stores.JSON(members))
}

func variationIDs(product []byte) []int64 {
	var p struct {
		Variations []int64 `json:"variations"`
	}
	_ = json.Unmarshal(product, &p) // a product may have none
	return p.Variations
}
