// Package shopify is a fake of the Shopify Admin API: GraphQL over a part of the provider's own schema, with connections and cursors,
// bulk operations and their JSONL, subscriptions, and a limit by the cost of a query; deliveries are signed in base64 and carry the
// topic in a header. There is no REST: a new app has none. One language, no tree of collections, prices turned around, as there.
package shopify

import (
	_ "embed"
	"net/http"
	"sync"
	"time"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"storefront.internal/deploy/fakeprovider/bucket"
	"storefront.internal/deploy/fakeprovider/catalogue"
	"storefront.internal/deploy/fakeprovider/docs"
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

// A standard plan: points that a shop can hold, and that come back each second.
const (
	points  = 2000
	restore = 100
)

// Fake is the provider.
type Fake struct {
	*stores.Keeper
	config stores.Config
	schema *ast.Schema
	api    http.Handler
	policy hooks.Policy

	mu       sync.Mutex
	bulk     map[string][]*bulkOperation // by shop, oldest first
	lastBulk int64
	throttle int // answers about too great a cost, of which the status alternates
}

// New makes the provider with its first store.
func New(c stores.Config) *Fake {
	f := &Fake{config: c, bulk: map[string][]*bulkOperation{}, schema: gqlparser.MustLoadSchema(&ast.Source{Name: "admin", Input: schemaText})}
	f.Keeper = stores.NewKeeper(c, shopName, f.open)
	f.api = f.Conduct.Wrap(f.routes(), refuse)
	f.policy = hooks.Policy{
		Timeout: 5 * time.Second, Retries: c.Retries,
		OK:     func(status int) bool { return status >= 200 && status < 300 },
		Failed: func(set *hooks.Set, id int64, _ int) { set.Remove(id) },
	}
	if c.Retries == nil { // eight within four hours; then the subscription is gone
		f.policy.Retries = []time.Duration{
			10 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour, time.Hour, time.Hour,
		}
	}
	return f
}

func (f *Fake) open(id string) *stores.Store {
	source := catalogue.New(f.config.Seed+stores.Spread(id), f.config.Products)
	table := func(first, count int, make func(*catalogue.Source, int64) []byte) *docs.Table {
		return docs.NewTable(docs.Base{
			First: int64(first), Count: count, Updated: source.Updated, JSON: func(id int64) []byte { return make(source, id) },
			Stamps: []string{"updated_at"}, Format: stamp, Parse: parseStamp, Lists: []string{"variants"},
		})
	}
	return &stores.Store{
		ID: id, Bucket: bucket.New(f.config.Grants(points), f.config.Grants(restore), f.config.Unthrottled, f.config.Now),
		Tables: map[string]*docs.Table{
			stores.Products:   table(catalogue.FirstProduct, f.config.Products, productJSON),
			stores.Categories: table(catalogue.FirstCategory, f.config.Categories, collectionJSON),
			stores.Orders:     table(catalogue.FirstOrder, f.config.Orders, orderJSON),
		},
	}
}

// ServeHTTP serves the API: /{shop}/admin/api/{version}/graphql.json, and the files of bulk operations.
func (f *Fake) ServeHTTP(w http.ResponseWriter, r *http.Request) { f.api.ServeHTTP(w, r) }
