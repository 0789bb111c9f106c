package providertest

import (
	"net/netip"
	"testing"
	"time"

	"storefront.internal/control/internal/outbound"
	"storefront.internal/control/internal/provider"
	"storefront.internal/shared/catalog"
)

// Secret and Token are unique texts: no error and no print of a store may hold them.
const (
	Secret = "canary-app-secret-7c1d"
	Token  = "demo-ck_canary-token-91fe:cs_canary-token-52ab"
	Buyer  = "canary.buyer.3310@mail.example"
)

// Product is a product as the suite speaks of it; the subject's shop turns it into the provider's form.
type Product struct {
	ID        string
	Title     string
	Price     string // the regular one; "" is not said
	Sale      string // "" none
	Stock     *int64 // nil: not kept
	UpdatedAt time.Time
}

// Shop is the truth at the provider.
type Shop interface {
	PutProduct(p Product)
	DeleteProduct(id string)
	PutCategory(id, name, parent string)
	PutOrder(id, productID, total, buyerEmail string)
}

// Trouble is how the provider answers instead of normally.
type Trouble struct {
	Status   int
	Header   map[string]string
	Body     string
	Redirect string // 302 to it
	Hang     bool   // no answer before the caller gives up
	Truncate bool   // an answer that ends early
	Huge     int64  // an answer of so many bytes
	Bomb     bool   // an answer that decompresses to 4 MiB, more than a client takes
	Times    int    // so often, then normally; 0: until told otherwise
}

// Subject is an adapter and the provider that it talks to.
type Subject struct {
	Adapter provider.Adapter
	Store   provider.Store // with Token as credential, and a language and a currency
	Other   provider.Store // a second store
	Shop    Shop           // of Store
	Trouble func(Trouble)  // of every store; the zero value ends it
	Sign    func(secret string, body []byte) string

	// Notice returns a notification of a product, with the hint that goes with it.
	Notice func(kind provider.Kind, id string) (hint string, body []byte)
}

// Open starts a subject that calls through the client. What it starts ends with the test.
type Open func(t *testing.T, client *outbound.Client) *Subject

// Client returns a client that may call this machine, with small bounds.
func Client(t *testing.T, timeout time.Duration) *outbound.Client {
	t.Helper()
	c, err := outbound.New(outbound.Config{Timeout: timeout, MaxBody: 1 << 20, Open: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// All reads a whole listing, latest state of each entity, as a worker would.
func All(t *testing.T, s *Subject, e catalog.Entity, since time.Time, between func(page int)) map[string]provider.Fetched {
	t.Helper()
	out := make(map[string]provider.Fetched)
	cursor := provider.Cursor("")
	for n := range 500 {
		page, err := s.Adapter.Page(t.Context(), s.Store, e, since, cursor)
		if err != nil {
			t.Fatalf("page %d (%s): %v", n, cursor, err)
		}
		for _, item := range page.Items {
			out[item.ExternalID] = item
		}
		if page.Next == "" {
			return out
		}
		cursor = page.Next
		if between != nil {
			between(n)
		}
	}
	t.Fatal("the listing has no end")
	return nil
}
