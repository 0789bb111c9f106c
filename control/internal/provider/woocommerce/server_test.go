package woocommerce

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
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
	mu         sync.Mutex
	entities   map[string]map[int]entity // by path
	variations map[int][]string
	hooks      map[int]map[string]any
	lastHook   int
	quiet      bool // no X-WP headers
}

type entity struct {
	body    string
	updated time.Time
}

func newServer() *server {
	return &server{entities: map[string]map[int]entity{"products": {}, "products/categories": {},
		"orders": {}}, variations: map[int][]string{}, hooks: map[int]map[string]any{}}
}

func (s *server) put(kind, id, body string, updated time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, _ := strconv.Atoi(id)
	s.entities[kind][n] = entity{body, updated}
}

func (s *server) PutProduct(p providertest.Product) {
	stock := "null"
	if p.Stock != nil {
		stock = strconv.FormatInt(*p.Stock, 10)
	}
	s.put("products", p.ID, fmt.Sprintf(`{"id":%s,"name":%q,"type":"simple","status":"publish",`+
		`"catalog_visibility":"visible","price":%q,"regular_price":%q,"sale_price":%q,
	"on_sale":%v,"manage_stock":%v,"stock_quantity":%s,"stock_status":"instock","categories":[],"tags":[],`+
		`"images":[],"variations":[],"date_modified_gmt":%q}`,
		p.ID, p.Title, p.Price, p.Price, p.Sale, p.Sale != "", p.Stock != nil, stock,
		p.UpdatedAt.Format("2006-01-02T15:04:05")), p.UpdatedAt)
}

func (s *server) DeleteProduct(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, _ := strconv.Atoi(id)
	delete(s.entities["products"], n)
}

func (s *server) PutCategory(id, name, parent string) {
	if parent == "" {
		parent = "0"
	}
	s.put("products/categories", id,
		fmt.Sprintf(`{"id":%s,"name":%q,"slug":"h","parent":%s}`, id, name, parent), time.Time{})
}

func (s *server) PutOrder(id, product, total, email string) {
	s.put("orders", id, fmt.Sprintf(`{"id":%s,"number":"%s","status":"processing","currency":"USD",`+
		`"total":%q,"date_created_gmt":"2026-01-02T03:04:05","customer_id":0,
	"billing":{"first_name":"B","email":%q},"line_items":[{"product_id":%s,"variation_id":0,"quantity":3,`+
		`"price":16.666666666666668}]}`, id, id, total, email, product), time.Time{})
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"code":%q,"message":"No.","data":{"status":%d}}`, code, status)
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	if user, password, ok := r.BasicAuth(); !ok || user+":"+password != providertest.Token {
		refuse(w, http.StatusUnauthorized, "woocommerce_rest_cannot_view")
		return
	}
	_, path, _ := strings.Cut(r.URL.Path, "/wp-json/wc/v3/")
	parts := strings.Split(path, "/")
	id, err := strconv.Atoi(parts[len(parts)-1])
	kind := path
	if err == nil {
		kind = strings.Join(parts[:len(parts)-1], "/")
	}
	switch {
	case path == "system_status":
		fmt.Fprint(w, `{"environment":{"site_url":"https://shop.example.org","language":"en_US"},`+
			`"settings":{"currency":"USD"}}`)
	case kind == "webhooks":
		s.webhooks(w, r, id)
	case len(parts) == 3 && parts[2] == "variations":
		n, _ := strconv.Atoi(parts[1])
		s.page(w, r, s.variations[n])
	case s.entities[kind] == nil:
		refuse(w, http.StatusNotFound, "rest_no_route")
	case err != nil:
		s.list(w, r, s.entities[kind])
	default:
		e, ok := s.entities[kind][id]
		if !ok {
			refuse(w, http.StatusNotFound, "woocommerce_rest_product_invalid_id")
			return
		}
		fmt.Fprint(w, e.body)
	}
}

func (s *server) list(w http.ResponseWriter, r *http.Request, all map[int]entity) {
	since, _ := time.Parse("2006-01-02T15:04:05", r.URL.Query().Get("modified_after"))
	var ids []int
	for id, e := range all {
		if e.updated.After(since) || since.IsZero() {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	bodies := make([]string, 0, len(ids))
	for _, id := range ids {
		bodies = append(bodies, all[id].body)
	}
	s.page(w, r, bodies)
}

func (s *server) page(w http.ResponseWriter, r *http.Request, bodies []string) {
	q := r.URL.Query()
	per, _ := strconv.Atoi(q.Get("per_page"))
	page, _ := strconv.Atoi(q.Get("page"))
	if per < 1 || per > 100 || page < 1 || q.Get("orderby") != "id" {
		refuse(w, http.StatusBadRequest, "rest_invalid_param")
		return
	}
	pages := (len(bodies) + per - 1) / per
	if !s.quiet {
		w.Header().Set("X-WP-Total", strconv.Itoa(len(bodies)))
		w.Header().Set("X-WP-TotalPages", strconv.Itoa(pages))
	}
	fmt.Fprint(w, "[", strings.Join(bodies[min((page-1)*per, len(bodies)):min(page*per, len(bodies))], ",\n"),
		"]")
}

func (s *server) webhooks(w http.ResponseWriter, r *http.Request, id int) {
	switch r.Method {
	case http.MethodPost:
		var in map[string]any
		_ = json.NewDecoder(r.Body).Decode(&in)
		if in["secret"] == "" || in["topic"] == "" {
			refuse(w, http.StatusBadRequest, "woocommerce_rest_webhook_invalid_topic")
			return
		}
		s.lastHook++
		delete(in, "secret")
		in["id"] = s.lastHook
		s.hooks[s.lastHook] = in
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(in)
	case http.MethodDelete:
		if r.URL.Query().Get("force") != "true" {
			refuse(w, http.StatusNotImplemented, "woocommerce_rest_trash_not_supported")
			return
		}
		if s.hooks[id] == nil {
			refuse(w, http.StatusNotFound, "woocommerce_rest_shop_webhook_invalid_id")
			return
		}
		delete(s.hooks, id)
		fmt.Fprint(w, "{}")
	default:
		var bodies []string
		for _, h := range s.hooks {
			b, _ := json.Marshal(h)
			bodies = append(bodies, string(b))
		}
		s.page(w, r, bodies)
	}
}

func sign(secret string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

func open(t *testing.T, client *outbound.Client) *providertest.Subject {
	subject, _, _ := openServer(t, client)
	return subject
}

func openServer(
	t *testing.T, client *outbound.Client,
) (*providertest.Subject, *server, *providertest.FaultProxy) {
	t.Helper()
	s := newServer()
	proxy := providertest.NewFaultProxy(t, s)
	adapter, err := New(Config{HTTP: client, BaseURL: proxy.URL + "/{store}/wp-json/wc/v3"})
	if err != nil {
		t.Fatal(err)
	}
	shop := provider.Shop{ConnectionID: "con_1", ExternalStoreID: "shop.example.org",
		Credential: providertest.Token, Profile: provider.Profile{Language: "en-US", Currency: "USD"}}
	other := shop
	other.ConnectionID, other.ExternalStoreID = "con_2", "other.example.org"
	return &providertest.Subject{
		Adapter: adapter, Shop: shop, OtherShop: other, Data: s, SetFault: proxy.SetFault, Sign: sign,
		OtherTopics: []string{"product.restored", "order.restored"},
		Listing: func(elements string) string {
			return "[" + elements + "]"
		},
		Webhook: func(kind provider.EventKind, id string) (string, []byte) {
			if kind == provider.Deleted {
				return "product.deleted", fmt.Appendf(nil, `{"id":%s}`, id)
			}
			return "product.updated",
				fmt.Appendf(nil, `{"id":%s,"name":"x","permalink":"https://shop.example.org/x",`+
					`"catalog_visibility":"visible"}`, id)
		},
	}, s, proxy
}

func TestConformance(t *testing.T) {
	t.Parallel()
	providertest.Conformance(t, open)
}

// TestHostilePages is not parallel: it measures what the process allocates.
func TestHostilePages(t *testing.T) {
	providertest.HostilePages(t, open)
}
