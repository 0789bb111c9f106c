// Package tiendanube is a fake of the Tiendanube/Nuvemshop REST API: stores with products, categories and
// orders in the provider's own JSON, lists with Link pages, the leaky bucket and its headers, webhook
// registrations, and webhooks signed in lower-case hexadecimal. It has the provider's traps: two forms of
// time, prices that are null, quantities that are strings, a 404 behind the last page.
//
// webhooks.go lists the topics; documents.go and orders.go write the documents.
package tiendanube

import (
	"net/http"
	"strings"
	"time"

	"storefront.internal/deploy/fakeprovider/bucket"
	"storefront.internal/deploy/fakeprovider/hooks"
	"storefront.internal/deploy/fakeprovider/stores"
)

// Language and currency of every store.
const (
	Language = "es"
	Currency = "ARS"
)

const (
	bucketSize = 40
	bucketLeak = 2 // a second
)

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
	f.Registry = stores.NewRegistry(c, strings.TrimSpace, func(id string) *stores.Store {
		return c.Open(
			id,
			bucket.New(c.Scaled(bucketSize), c.Scaled(bucketLeak), c.Unthrottled, c.Now),
			stores.Format{
				Product: productJSON, Category: categoryJSON, Order: orderJSON,
				UpdatedAt: "updated_at", FormatTime: formatTime, ParseTime: parseTime,
				Lists: []string{"variants"},
			},
		)
	})
	f.api = f.Faults.Wrap(f.routes(), refuse)
	f.policy = hooks.Policy{
		Timeout: 40 * time.Second, Retries: c.Retries,
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

// ServeHTTP serves /{version}/{store}/….
func (f *Fake) ServeHTTP(w http.ResponseWriter, r *http.Request) { f.api.ServeHTTP(w, r) }
