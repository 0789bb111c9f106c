package providertest

import (
	"net/netip"
	"testing"
	"time"

	"storefront.internal/control/internal/outbound"
	"storefront.internal/control/internal/provider"
	"storefront.internal/shared/catalog"
)

// Secret, Token and Buyer are unique texts that no error and no printed shop may contain.
const (
	Secret = "canary-app-secret-7c1d"
	Token  = "demo-ck_canary-token-91fe:cs_canary-token-52ab"
	Buyer  = "canary.buyer.3310@mail.example"
)

// Product is a product as the suite describes it; ShopData writes it in the provider's form.
type Product struct {
	ID        string
	Title     string
	Price     string // the regular one; "" unknown
	Sale      string // promotional; "" none
	Stock     *int64 // nil: not tracked
	UpdatedAt time.Time
}

// ShopData changes what the provider has.
type ShopData interface {
	PutProduct(p Product)
	DeleteProduct(id string)
	PutCategory(id, name, parent string)
	PutOrder(id, productID, total, buyerEmail string)
}

// Fault is how the provider answers instead of normally.
type Fault struct {
	Status   int
	Header   map[string]string
	Body     string
	Redirect string // the target of a 302
	Hang     bool   // no response before the caller gives up
	Truncate bool   // a response that ends early
	Huge     int64  // the size of the response in bytes
	Bomb     bool   // a response that decompresses to 4 MiB, over the limit
	Times    int    // the number of faulty responses; 0: until replaced
}

// Subject is an adapter and the provider that it talks to.
type Subject struct {
	Adapter   provider.Adapter
	Shop      provider.Shop // with Token as credential, and a language and a currency
	OtherShop provider.Shop // a second shop
	Data      ShopData      // of Shop
	SetFault  func(Fault)   // for all shops; the zero value ends it
	Sign      func(secret string, body []byte) string

	// OtherTopics are topics of the platform that the adapter does not subscribe to, of several words: an
	// adapter has to write and read back every topic.
	OtherTopics []string

	// Listing returns the body of a page of updated products with these elements, in JSON with commas.
	Listing func(elements string) string

	// Webhook returns a webhook about a product, and the hint that comes with it.
	Webhook func(kind provider.EventKind, id string) (hint string, body []byte)
}

// Open starts a subject that calls through the client. It ends with the test.
type Open func(t *testing.T, client *outbound.Client) *Subject

// Client returns a client with small bounds that may call this machine.
func Client(t *testing.T, timeout time.Duration) *outbound.Client {
	t.Helper()
	c, err := outbound.New(outbound.Config{Timeout: timeout, MaxBody: 1 << 20,
		AllowedNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// All reads a whole listing and returns the latest state of each entity.
func All(
	t *testing.T, s *Subject, e catalog.Entity, since time.Time, between func(page int),
) map[string]provider.Fetched {
	t.Helper()
	out := make(map[string]provider.Fetched)
	cursor := provider.Cursor("")
	for n := range 500 {
		page, err := s.Adapter.Page(t.Context(), s.Shop, e, since, cursor)
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
