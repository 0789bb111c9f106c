// Package stores keeps the stores of a provider: each is made on first sight, with its documents,
// subscriptions, rate limit and the state of the installation. It owns what the three providers have in
// common behind their APIs and their debug routes; the wire format is each provider's own.
package stores

import (
	"hash/fnv"
	"time"

	"storefront.internal/deploy/fakeprovider/bucket"
	"storefront.internal/deploy/fakeprovider/catalogue"
	"storefront.internal/deploy/fakeprovider/docs"
	"storefront.internal/deploy/fakeprovider/hooks"
)

// Config is what every provider's fake takes.
type Config struct {
	Seed        uint64
	Products    int
	Categories  int
	Orders      int
	AppSecret   string
	StrictURLs  bool // webhook URLs must be what the real provider takes
	Unthrottled bool
	Plan        int // multiplies the rate limits; 0 is 1
	Sender      *hooks.Sender
	Now         func() time.Time
	FirstStore  string          // opened at the start: debug requests that name no store reach it
	Retries     []time.Duration // replaces the provider's waits between attempts at a webhook; nil keeps them
}

// Scaled is a rate limit on the configured plan.
func (c Config) Scaled(limit float64) float64 { return limit * float64(max(c.Plan, 1)) }

// Kinds of documents.
const (
	Products   = "products"
	Categories = "categories"
	Orders     = "orders"
)

// Store is one shop.
type Store struct {
	ID     string
	Source *catalogue.Source
	Access Access
	Hooks  hooks.Set
	Tables map[string]*docs.Table
	Bucket *bucket.Bucket
}

// Format is how a provider writes its documents.
type Format struct {
	Product, Category, Order func(s *catalogue.Source, id int64) []byte

	UpdatedAt  string // the member with the time of the last change
	FormatTime func(time.Time) string
	ParseTime  func(string) (time.Time, error)
	Lists      []string // members of a product whose elements have ids of their own
}

// Open makes a store whose contents depend on the seed and its id.
func (c Config) Open(id string, limit *bucket.Bucket, f Format) *Store {
	s := &Store{ID: id, Source: catalogue.New(c.Seed+Hash(id), c.Products), Bucket: limit}
	table := func(first, count int, write func(*catalogue.Source, int64) []byte) *docs.Table {
		return docs.NewTable(docs.Base{
			First: int64(first), Count: count, JSON: func(id int64) []byte { return write(s.Source, id) },
			Updated: s.Source.Updated, UpdatedAt: f.UpdatedAt, FormatTime: f.FormatTime,
			ParseTime: f.ParseTime,
			Lists:     f.Lists,
		})
	}
	s.Tables = map[string]*docs.Table{
		Products:   table(catalogue.FirstProduct, c.Products, f.Product),
		Categories: table(catalogue.FirstCategory, c.Categories, f.Category),
		Orders:     table(catalogue.FirstOrder, c.Orders, f.Order),
	}
	return s
}

// Snapshot is the store with its documents as they are now, for a reader in the background.
func (s *Store) Snapshot() *Store {
	copied := &Store{ID: s.ID, Tables: make(map[string]*docs.Table, len(s.Tables))}
	for kind, table := range s.Tables {
		copied.Tables[kind] = table.Clone()
	}
	return copied
}

// Hash is a number that depends on a text alone. It makes the contents of stores differ.
func Hash(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text)) // cannot fail
	return h.Sum64()
}

// Send delivers a webhook to the active subscriptions of a topic; one of the whole app goes once to every
// address.
func (s *Store) Send(sender *hooks.Sender, p hooks.Policy, topic string, wholeApp bool, o hooks.Options,
	message func(hooks.Hook) hooks.Message,
) ([]hooks.Delivery, error) {
	seen := map[string]bool{}
	to := s.Hooks.All(func(h hooks.Hook) bool {
		if !wholeApp {
			return h.Topic == topic && h.Status != "disabled" && h.Status != "paused"
		}
		first := !seen[h.URL]
		seen[h.URL] = true
		return first
	})
	if len(to) == 0 {
		return nil, ErrNoSubscribers
	}
	var sent []hooks.Delivery
	for _, h := range to {
		sent = append(sent, sender.Send(&s.Hooks, p, h, message(h), o)...)
	}
	return sent, nil
}
