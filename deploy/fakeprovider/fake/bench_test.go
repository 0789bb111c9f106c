package fake

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// BenchmarkPages is what the fakes themselves cost, so that a measurement of who calls them can be read:
// pages of 100 products.
func BenchmarkPages(b *testing.B) {
	s := New(Config{Unthrottled: true, Products: 20_000})
	defer s.Close()
	h := s.Handler()
	f := func(name string, request func(page int) *http.Request) {
		b.Run(name, func(b *testing.B) {
			for i := range b.N {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, request(i%200+1))
				if w.Code != http.StatusOK {
					b.Fatalf("%d %.200s", w.Code, w.Body)
				}
			}
			b.ReportMetric(float64(b.N)*100/b.Elapsed().Seconds(), "products/s")
		})
	}
	f(Tiendanube, func(page int) *http.Request {
		r := httptest.NewRequest("GET", fmt.Sprintf("/tiendanube/v1/1/products?per_page=100&page=%d", page),
			nil)
		r.Header.Set("Authentication", "bearer demo-1")
		r.Header.Set("User-Agent", "bench")
		return r
	})
	f(WooCommerce, func(page int) *http.Request {
		return httptest.NewRequest("GET",
			fmt.Sprintf("%s/products?per_page=100&page=%d&consumer_key=demo-1&consumer_secret=s", wooAPI,
				page), nil)
	})
	f(Shopify, func(page int) *http.Request {
		query := fmt.Sprintf(`{"query":"{products(first:100,query:\"id:>=%d\"){nodes{id title `+
			`variants(first:10){nodes{id price selectedOptions{name value}}}}}}"}`, 1001+100*(page-1))
		r := httptest.NewRequest("POST", shopifyAPI, strings.NewReader(query))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Shopify-Access-Token", "demo-1")
		return r
	})
}
