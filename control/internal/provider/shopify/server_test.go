package shopify

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"storefront.internal/control/internal/outbound"
	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/provider/providertest"
)

// server is the provider's API as far as the suite needs it.
type server struct {
	url string

	mu        sync.Mutex
	products  map[int]providertest.Product
	extra     int // further variants of every product
	cats      map[int]string
	orders    map[int]string
	hooks     map[int]webhook
	lastHook  int
	files     map[string]string
	bulkCalls int
	statuses  []string // of the exports to come; COMPLETED when used up
	noRanges  bool
	shuffled  bool     // children at the end of the file
	replies   []string // instead of the next ones
}

func newServer() *server {
	return &server{products: map[int]providertest.Product{}, cats: map[int]string{}, orders: map[int]string{},
		hooks: map[int]webhook{}, files: map[string]string{}}
}

func (s *server) PutProduct(p providertest.Product) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, _ := strconv.Atoi(p.ID)
	s.products[n] = p
}

func (s *server) DeleteProduct(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, _ := strconv.Atoi(id)
	delete(s.products, n)
}

func (s *server) PutCategory(id, name, _ string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, _ := strconv.Atoi(id)
	s.cats[n] = fmt.Sprintf(`{"id":"gid://shopify/Collection/%s","title":%q,"handle":"h",`+
		`"updatedAt":"2026-01-01T00:00:00Z"}`, id, name)
}

func (s *server) PutOrder(id, product, total, email string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, _ := strconv.Atoi(id)
	s.orders[n] = fmt.Sprintf(`"id":"gid://shopify/Order/%s","name":"#1001",`+
		`"createdAt":"2026-01-02T03:04:05Z","updatedAt":"2026-01-02T03:04:05Z","cancelledAt":null,`+
		`"closed":false,
"currencyCode":"USD","displayFinancialStatus":"PAID","totalPriceSet":{"shopMoney":{"amount":%q,`+
		`"currencyCode":"USD"}},"email":%q,"customer":null|{"id":"gid://shopify/LineItem/1",`+
		`"quantity":2,"product":{"id":"gid://shopify/Product/%s"},"variant":null,`+
		`"originalUnitPriceSet":{"shopMoney":{"amount":"1.0","currencyCode":"USD"}}`,
		id, total, email, product)
}

// node returns the members of a product, and its variants.
func (s *server) node(p providertest.Product) (string, []string) {
	price, compare, tracked, quantity := "null", "null", "false", "0"
	if p.Price != "" {
		price = strconv.Quote(p.Price)
	}
	if p.Sale != "" {
		price, compare = strconv.Quote(p.Sale), strconv.Quote(p.Price)
	}
	if p.Stock != nil {
		tracked, quantity = "true", strconv.FormatInt(*p.Stock, 10)
	}
	members := fmt.Sprintf(`"id":"gid://shopify/Product/%s","title":%q,"descriptionHtml":"","handle":"h",`+
		`"vendor":"","status":"ACTIVE","tags":[],"updatedAt":%q,`+
		`"onlineStoreUrl":null`, p.ID, p.Title, p.UpdatedAt.Format(time.RFC3339))
	var variants []string
	for i := range 1 + s.extra {
		variants = append(variants,
			fmt.Sprintf(`"id":"gid://shopify/ProductVariant/%s%03d","sku":"","price":%s,`+
				`"compareAtPrice":%s,"inventoryPolicy":"DENY","inventoryQuantity":%s,`+
				`"availableForSale":true,"inventoryItem":{"tracked":%s},`+
				`"selectedOptions":[{"name":"Title","value":"Default Title"}]`,
				p.ID, i, price, compare, quantity, tracked))
	}
	return members, variants
}

var operationName = regexp.MustCompile(`^(?:query|mutation) (\w+)`)

const extensions = `"extensions":{"cost":{"requestedQueryCost":10,"actualQueryCost":5,` +
	`"throttleStatus":{"maximumAvailable":20000000.0,"currentlyAvailable":19999990,"restoreRate":100000.0}}}`

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if name, ok := strings.CutPrefix(r.URL.Path, "/files/"); ok {
		s.file(w, r, name)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	if r.Header.Get("X-Shopify-Access-Token") != providertest.Token {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"errors":"[API] Invalid API key or access token"}`)
		return
	}
	var in struct {
		Query     string
		Variables map[string]any
	}
	_ = json.NewDecoder(r.Body).Decode(&in)
	if len(s.replies) > 0 {
		fmt.Fprint(w, s.replies[0])
		s.replies = s.replies[1:]
		return
	}
	name := operationName.FindStringSubmatch(in.Query)
	if r.Method != http.MethodPost || name == nil ||
		!strings.HasSuffix(r.URL.Path, "/admin/api/"+DefaultVersion+"/graphql.json") {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	text := func(name string) string { v, _ := in.Variables[name].(string); return v }
	fmt.Fprintf(w, "{\"data\": {%s}, %s}", s.answer(strings.TrimPrefix(name[1], "Storefront"), text),
		extensions)
}

func list(nodes []string, next string) string {
	return fmt.Sprintf(`{"nodes":[%s],"pageInfo":{"hasNextPage":%v,"endCursor":%q}}`,
		strings.Join(nodes, ","), next != "", next)
}

func (s *server) answer(name string, text func(string) string) string {
	id, _ := parseGID(text("id"))
	n, _ := strconv.Atoi(id)
	after, _ := strconv.Atoi(text("after"))
	switch name {
	case "Shop":
		return `"shop":{"name":"The shop","myshopifyDomain":"demo.myshopify.com","currencyCode":"USD",` +
			`"primaryDomain":{"localization":null}}`
	case "Locales":
		return `"shopLocales":[{"locale":"de","primary":false},{"locale":"en","primary":true}]`
	case "Product":
		p, ok := s.products[n]
		if !ok {
			return `"product":null`
		}
		return `"product":` + s.product(p, 100)
	case "Variants":
		_, variants := s.node(s.products[n])
		end, next := min(after+250, len(variants)), ""
		if end < len(variants) {
			next = strconv.Itoa(end)
		}
		return `"product":{"id":"x","variants":` + list(objects(variants[after:end]), next) + `}`
	case "Products":
		return `"products":` + s.updated(text("query"), after)
	case "Collection":
		if c, ok := s.cats[n]; ok {
			return `"collection":` + c
		}
		return `"collection":null`
	case "Collections":
		var all []string
		for _, c := range s.cats {
			all = append(all, c)
		}
		return `"collections":` + list(all, "")
	case "Order":
		if o, ok := s.orders[n]; ok {
			head, line, _ := strings.Cut(o, "|")
			return `"order":{` + head + `,"lineItems":` + list([]string{line + "}"}, "") + `}`
		}
		return `"order":null`
	case "RunBulk":
		return s.runBulk(text("query"))
	case "Bulk":
		return s.bulk(id)
	default:
		return s.webhooks(name, id, n, text)
	}
}

func objects(members []string) []string {
	out := make([]string, 0, len(members))
	for _, m := range members {
		out = append(out, "{"+m+"}")
	}
	return out
}

func (s *server) product(p providertest.Product, most int) string {
	members, variants := s.node(p)
	next := ""
	if len(variants) > most {
		variants, next = variants[:most], strconv.Itoa(most)
	}
	return "{" + members + `,"variants":` + list(objects(variants), next) + `,"media":` + list(nil,
		"") + `,"collections":` + list(nil, "") + "}"
}

func (s *server) updated(query string, after int) string {
	since, _ := time.Parse("updated_at:>='"+time.RFC3339+"'", query)
	var ids []int
	for id, p := range s.products {
		if id > after && !p.UpdatedAt.Before(since) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	next := ""
	if len(ids) > 10 {
		ids, next = ids[:10], strconv.Itoa(ids[9])
	}
	var nodes []string
	for _, id := range ids {
		nodes = append(nodes, s.product(s.products[id], 20))
	}
	return list(nodes, next)
}

func sign(secret string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

func open(t *testing.T, client *outbound.Client) *providertest.Subject {
	subject, _ := openServer(t, client)
	return subject
}

func openServer(t *testing.T, client *outbound.Client) (*providertest.Subject, *server) {
	t.Helper()
	s := newServer()
	proxy := providertest.NewFaultProxy(t, s)
	s.url = proxy.URL
	adapter, err := New(Config{HTTP: client, BaseURL: proxy.URL + "/{store}"})
	if err != nil {
		t.Fatal(err)
	}
	adapter.chunkSize = 40_000 // several pieces
	shop := provider.Shop{ConnectionID: "con_1", ExternalStoreID: "demo.myshopify.com",
		Credential: providertest.Token, Profile: provider.Profile{Language: "en", Currency: "USD"}}
	other := shop
	other.ConnectionID, other.ExternalStoreID = "con_2", "other.myshopify.com"
	return &providertest.Subject{
		Adapter: adapter, Shop: shop, OtherShop: other, Data: s, SetFault: proxy.SetFault, Sign: sign,
		OtherTopics: []string{"inventory_items/update", "inventory_levels/update", "bulk_operations/finish"},
		Listing: func(elements string) string {
			return `{"data":{"products":{"nodes":[` + elements + `],"pageInfo":{"hasNextPage":false}}}}`
		},
		Webhook: func(kind provider.EventKind, id string) (string, []byte) {
			if kind == provider.Deleted {
				return "products/delete", fmt.Appendf(nil, `{"id":%s}`, id)
			}
			return "products/update",
				fmt.Appendf(nil, `{"id":%s,"admin_graphql_api_id":"gid://shopify/Product/%s","title":"x"}`,
					id, id)
		},
	}, s
}

func TestConformance(t *testing.T) {
	t.Parallel()
	providertest.Conformance(t, open)
}

// TestHostilePages is not parallel: it measures what the process allocates.
func TestHostilePages(t *testing.T) {
	providertest.HostilePages(t, open)
}
