// Package shopify is a fake of the Shopify Admin API: GraphQL over the part of the provider's schema that the
// adapter asks for, with connections and cursors, bulk operations and their JSONL files, subscriptions, and a
// limit by the cost of a query. Webhooks are signed in base64 and carry the topic in a header. There is no
// REST API: a new app has none. Texts are in one language, collections have no tree, and `price` is what is
// paid.
//
// schema.graphql lists the fields; queries.go and graph.go answer them.
package shopify

import (
	_ "embed"
	"net/http"
	"sync"
	"time"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"storefront.internal/deploy/fakeprovider/bucket"
	"storefront.internal/deploy/fakeprovider/hooks"
	"storefront.internal/deploy/fakeprovider/stores"
)

//go:embed schema.graphql
var schemaText string

// Currency and language of every shop.
const (
	Currency = "USD"
	Language = "en"
)

// The standard plan: the points that a shop can hold, and those that come back each second.
const (
	points  = 2000
	restore = 100
)

// Fake is the provider.
type Fake struct {
	*stores.Registry
	config stores.Config
	schema *ast.Schema
	api    http.Handler
	policy hooks.Policy

	mu        sync.Mutex
	bulk      map[string][]*bulkOperation // by shop, oldest first
	lastBulk  int64
	throttled int // throttled answers so far; their status alternates
}

// New makes the provider with its first store.
func New(c stores.Config) *Fake {
	f := &Fake{config: c, bulk: map[string][]*bulkOperation{}}
	f.schema = gqlparser.MustLoadSchema(&ast.Source{Name: "admin", Input: schemaText})
	f.Registry = stores.NewRegistry(c, shopName, func(id string) *stores.Store {
		return c.Open(
			id,
			bucket.New(c.Scaled(points), c.Scaled(restore), c.Unthrottled, c.Now),
			stores.Format{
				Product: productJSON, Category: collectionJSON, Order: orderJSON,
				UpdatedAt: "updated_at", FormatTime: formatTime, ParseTime: parseTime,
				Lists: []string{"variants"},
			},
		)
	})
	f.api = f.Faults.Wrap(f.routes(), refuse)
	f.policy = hooks.Policy{
		Timeout: 5 * time.Second, Retries: c.Retries,
		OK:     func(status int) bool { return status >= 200 && status < 300 },
		Failed: func(set *hooks.Set, id int64, _ int) { set.Remove(id) },
	}
	if c.Retries == nil { // eight within four hours; then the subscription is removed
		f.policy.Retries = []time.Duration{10 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute,
			30 * time.Minute, time.Hour, time.Hour, time.Hour}
	}
	return f
}

// ServeHTTP serves /{shop}/admin/api/{version}/graphql.json and the files of bulk operations.
func (f *Fake) ServeHTTP(w http.ResponseWriter, r *http.Request) { f.api.ServeHTTP(w, r) }
