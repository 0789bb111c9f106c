// Package tiendanube is a fake of the Tiendanube/Nuvemshop REST API: stores with products, categories and orders in the provider's own
// JSON, lists with Link pages, the leaky bucket and its headers, webhook registrations, and deliveries signed in lower-case
// hexadecimal. Its traps are the provider's: two forms of time, prices that are null, quantities that are strings, a 404 behind the
// last page. It keeps no rule of ours.
package tiendanube

import (
	"net/http"
	"strings"
	"time"

	"storefront.internal/deploy/fakeprovider/bucket"
	"storefront.internal/deploy/fakeprovider/catalogue"
	"storefront.internal/deploy/fakeprovider/docs"
	"storefront.internal/deploy/fakeprovider/hooks"
	"storefront.internal/deploy/fakeprovider/stores"
)

// What every store says of itself.
const (
	Language = "es"
	Currency = "ARS"
)

const (
	bucketSize = 40
	bucketLeak = 2 // a second
	timeout    = 40 * time.Second
)

// Fake is the provider.
type Fake struct {
	*stores.Keeper
	config stores.Config
	api    http.Handler
	policy hooks.Policy
}

// New makes the provider with its first store.
func New(c stores.Config) *Fake {
	f := &Fake{config: c}
	f.Keeper = stores.NewKeeper(c, strings.TrimSpace, f.open)
	f.api = f.Conduct.Wrap(f.routes(), refuse)
	f.policy = hooks.Policy{
		Timeout: timeout, Retries: c.Retries,
		OK: func(status int) bool { return status >= 200 && status < 300 },
	}
	if c.Retries == nil {
		f.policy.Retries = retries()
	}
	return f
}

// retries are the waits before the 17 attempts that follow the first.
func retries() []time.Duration {
	waits := []time.Duration{0, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute}
	for len(waits) < 17 {
		waits = append(waits, waits[len(waits)-1]*14/10)
	}
	return waits
}

func (f *Fake) open(id string) *stores.Store {
	source := catalogue.New(f.config.Seed+stores.Spread(id), f.config.Products)
	table := func(first, count int, make func(*catalogue.Source, int64) []byte) *docs.Table {
		return docs.NewTable(docs.Base{
			First: int64(first), Count: count, Updated: source.Updated, JSON: func(id int64) []byte { return make(source, id) },
			Stamps: []string{"updated_at"}, Format: formatStamp, Parse: parseStamp, Lists: []string{"variants"},
		})
	}
	return &stores.Store{
		ID: id, Bucket: bucket.New(f.config.Grants(bucketSize), f.config.Grants(bucketLeak), f.config.Unthrottled, f.config.Now),
		Tables: map[string]*docs.Table{
			stores.Products:   table(catalogue.FirstProduct, f.config.Products, productJSON),
			stores.Categories: table(catalogue.FirstCategory, f.config.Categories, categoryJSON),
			stores.Orders:     table(catalogue.FirstOrder, f.config.Orders, orderJSON),
		},
	}
}

// ServeHTTP serves the API: /{version}/{store}/… and the token endpoint.
func (f *Fake) ServeHTTP(w http.ResponseWriter, r *http.Request) { f.api.ServeHTTP(w, r) }
