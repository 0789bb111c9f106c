package tiendanube

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
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
	t *testing.T

	mu       sync.Mutex
	entities map[string]map[int]entity // by path
	hooks    map[int]map[string]any
	lastHook int
	unsorted bool // newest first
}

type entity struct {
	body    string
	updated time.Time
}

func newServer(t *testing.T) *server {
	return &server{t: t, entities: map[string]map[int]entity{"products": {}, "categories": {}, "orders": {}},
		hooks: map[int]map[string]any{}}
}

func (s *server) put(kind, id, body string, updated time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, _ := strconv.Atoi(id)
	s.entities[kind][n] = entity{body, updated}
}

func (s *server) PutProduct(p providertest.Product) {
	price, sale, stock := "null", "null", "null"
	if p.Price != "" {
		price = strconv.Quote(p.Price)
	}
	if p.Sale != "" {
		sale = strconv.Quote(p.Sale)
	}
	if p.Stock != nil {
		stock = strconv.FormatInt(*p.Stock, 10)
	}
	s.put("products", p.ID, fmt.Sprintf(`{"id": %s, "name": {"es": %q}, "published": true, "categories": `+
		`[], "images": [], "tags": "",
	"variants": [{"id": 5%s, "price": %s, "promotional_price": %s, "stock_management": %v, "stock": %s, `+
		`"values": []}], "updated_at": %q}`,
		p.ID, p.Title, p.ID, price, sale, p.Stock != nil, stock,
		p.UpdatedAt.Format("2006-01-02T15:04:05-0700")), p.UpdatedAt)
}

func (s *server) DeleteProduct(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, _ := strconv.Atoi(id)
	delete(s.entities["products"], n)
}

func (s *server) PutCategory(id, name, parent string) {
	if parent == "" {
		parent = "null"
	}
	s.put("categories", id,
		fmt.Sprintf(`{"id":%s,"name":{"es":%q},"handle":{"es":"h"},"parent":%s,`+
			`"updated_at":"2026-01-01T00:00:00+0000"}`, id, name, parent), time.Time{})
}

func (s *server) PutOrder(id, product, total, email string) {
	s.put("orders", id, fmt.Sprintf(`{"id":%s,"number":100,"status":"open","payment_status":"paid",`+
		`"currency":"ARS","total":%q,"created_at":"2026-01-02T03:04:05+0000",
	"products":[{"product_id":%s,"variant_id":"5%s","price":%q,"quantity":"2"}],"customer":{"id":9,`+
		`"name":"B","email":%q}}`, id, total, product, product, total, email), time.Time{})
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("X-Main-Language", "es")
	w.Header().Set("X-Rate-Limit-Limit", "40000")
	w.Header().Set("X-Rate-Limit-Remaining", "39999")
	w.Header().Set("X-Rate-Limit-Reset", "1")
	if r.Header.Get("User-Agent") != "storefront (dev@shop-example.com)" ||
		r.Header.Get("Authentication") != "bearer "+providertest.Token {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodDelete &&
		r.Header.Get("Content-Type") != "application/json" {
		w.WriteHeader(http.StatusUnsupportedMediaType)
		return
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/") // 2025-03, store, kind, id
	switch {
	case len(parts) < 3:
		w.WriteHeader(http.StatusNotFound)
	case parts[2] == "store":
		fmt.Fprint(w, `{"id":1,"name":{"es":"La tienda"},"country":"AR","main_currency":"ARS",`+
			`"main_language":"es","original_domain":"x.mitiendanube.com","domains":["www.x.com"]}`)
	case parts[2] == "webhooks":
		s.webhooks(w, r, parts)
	case s.entities[parts[2]] == nil:
		w.WriteHeader(http.StatusNotFound)
	case len(parts) == 3:
		s.list(w, r, s.entities[parts[2]])
	default:
		n, _ := strconv.Atoi(parts[3])
		e, ok := s.entities[parts[2]][n]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			e.body = `{"code":404,"message":"Not Found","description":"Product with such id does not exist"}`
		}
		fmt.Fprint(w, e.body)
	}
}

func (s *server) list(w http.ResponseWriter, r *http.Request, all map[int]entity) {
	q := r.URL.Query()
	after, _ := strconv.Atoi(q.Get("since_id"))
	per, _ := strconv.Atoi(q.Get("per_page"))
	page := 1
	if q.Get("page") != "" {
		page, _ = strconv.Atoi(q.Get("page"))
	}
	since, _ := time.Parse(time.RFC3339, q.Get("updated_at_min"))
	var ids []int
	for id, e := range all {
		if (id > after || s.unsorted) && !e.updated.Before(since) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	if s.unsorted {
		slices.Reverse(ids)
	}
	start, end := min((page-1)*per, len(ids)), min(page*per, len(ids))
	if start == end {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"code":404,"message":"Not Found","description":"Last page is 0"}`)
		return
	}
	if end < len(ids) {
		w.Header().Set("Link",
			fmt.Sprintf(`<https://api.tiendanube.com/x?page=%d>; rel="next", `+
				`<https://api.tiendanube.com/x?page=9>; rel="last"`, page+1))
	} else {
		w.Header().Set("Link", `<https://api.tiendanube.com/x?page=1>; rel="first"`)
	}
	bodies := make([]string, 0, per)
	for _, id := range ids[start:end] {
		bodies = append(bodies, all[id].body)
	}
	fmt.Fprint(w, "[", strings.Join(bodies, " , \n"), "]")
}

func (s *server) webhooks(w http.ResponseWriter, r *http.Request, parts []string) {
	switch r.Method {
	case http.MethodPost:
		var in struct{ Event, URL string }
		_ = json.NewDecoder(r.Body).Decode(&in)
		if in.Event == "" || !strings.HasPrefix(in.URL, "https://") {
			w.WriteHeader(http.StatusUnprocessableEntity)
			fmt.Fprint(w, `{"url":["must be https"]}`)
			return
		}
		s.lastHook++
		s.hooks[s.lastHook] = map[string]any{"id": s.lastHook, "event": in.Event, "url": in.URL}
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(s.hooks[s.lastHook])
	case http.MethodDelete:
		n, _ := strconv.Atoi(parts[3])
		if s.hooks[n] == nil {
			w.WriteHeader(http.StatusNotFound)
		}
		delete(s.hooks, n)
		fmt.Fprint(w, "{}")
	default:
		all := make([]any, 0, len(s.hooks))
		for _, h := range s.hooks {
			all = append(all, h)
		}
		_ = json.NewEncoder(w).Encode(all)
	}
}

func sign(secret string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

// open starts the server behind a fault proxy, with an adapter.
func open(t *testing.T, client *outbound.Client) *providertest.Subject {
	subject, _ := openServer(t, client)
	return subject
}

func openServer(t *testing.T, client *outbound.Client) (*providertest.Subject, *server) {
	t.Helper()
	s := newServer(t)
	proxy := providertest.NewFaultProxy(t, s)
	adapter, err := New(Config{HTTP: client, BaseURL: proxy.URL + "/2025-03/{store}",
		UserAgent: "storefront (dev@shop-example.com)"})
	if err != nil {
		t.Fatal(err)
	}
	shop := provider.Shop{ConnectionID: "con_1", ExternalStoreID: "123", Credential: providertest.Token,
		Profile: provider.Profile{Language: "es", Currency: "ARS"}}
	other := shop
	other.ConnectionID, other.ExternalStoreID = "con_2", "456"
	return &providertest.Subject{
		Adapter: adapter, Shop: shop, OtherShop: other, Data: s, SetFault: proxy.SetFault, Sign: sign,
		OtherTopics: []string{"product_variant/custom_fields_updated", "order/custom_fields_updated"},
		Listing: func(elements string) string {
			return "[" + elements + "]"
		},
		Webhook: func(kind provider.EventKind, id string) (string, []byte) {
			event := map[provider.EventKind]string{provider.Changed: "product/updated",
				provider.Deleted: "product/deleted"}[kind]
			return "", fmt.Appendf(nil, `{"store_id":123,"event":%q,"id":%s}`, event, id)
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
