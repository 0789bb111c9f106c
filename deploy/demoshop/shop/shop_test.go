package shop

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"storefront.internal/deploy/demoshop/proxy"
	"storefront.internal/deploy/demoshop/trail"
	"storefront.internal/deploy/stack/client"
)

const item = `{"item":{"item_id":"itm_1","title":{"en":"Mate <b>"},"brand":"Sur"},"variants":[{"variant_id":"var_1",
	"title":{"en":"Red"},"price":{"amount":"10.00","currency":"ARS"}}],"availability":[],"refresh_revision":1}`

// A cart becomes an order whose page can be opened by anybody, with the Decision of each line; texts of the
// catalog are escaped.
func TestFromProductToOrder(t *testing.T) {
	t.Parallel()
	edge := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/catalog/items/itm_1" {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, item)
	}))
	defer edge.Close()
	base, err := url.Parse(edge.URL)
	if err != nil {
		t.Fatal(err)
	}
	tr := trail.New()
	storefront := client.Storefront{BaseURL: edge.URL, ConnectionID: "con_a", Key: "spk_a"}
	s, err := New(Config{Storefront: storefront, BrowserEdgeURL: edge.URL}, proxy.New(base, tr), tr)
	if err != nil {
		t.Fatal(err)
	}
	site := httptest.NewServer(s.Handler())
	defer site.Close()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &http.Client{Jar: jar}
	read := func(res *http.Response, err error) (at, body string) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.Request.URL.Path, string(text)
	}
	_, body := read(c.Get(site.URL + "/product/itm_1?decision=dec_1"))
	if !strings.Contains(body, "Mate &lt;b&gt;") {
		t.Errorf("product page: %s", body)
	}
	if res, err := c.Get(site.URL + "/product/itm_2"); err != nil || res.StatusCode != http.StatusNotFound {
		t.Errorf("unknown product: %v %v", res, err)
	}
	line := url.Values{"item": {"itm_1"}, "variant": {"var_1"}, "decision": {"dec_1"}, "quantity": {"2"}}
	read(c.PostForm(site.URL+"/cart/add", line))
	var at string
	at, body = read(c.PostForm(site.URL+"/cart/add", line))
	if at != "/cart" || !strings.Contains(body, `value="4"`) || !strings.Contains(body, "Cart (4)") {
		t.Errorf("cart at %s: %s", at, body)
	}
	at, _ = read(c.PostForm(site.URL+"/checkout", url.Values{"attribution": {"1;x:y"}}))
	if !strings.HasPrefix(at, "/thanks/") {
		t.Fatalf("the order is at %s", at)
	}
	_, body = read(http.Get(site.URL + at)) // another browser
	for _, part := range []string{`"decision":"dec_1"`, `"itemId":"itm_1"`, `"quantity":4`, "1;x:y"} {
		if !strings.Contains(body, part) {
			t.Errorf("%s is not in %s", part, body)
		}
	}
	if _, body := read(c.Get(site.URL + "/cart")); !strings.Contains(body, "empty") {
		t.Errorf("cart after the order: %s", body)
	}
	_, body = read(c.Get(site.URL + "/away?from=//elsewhere.example"))
	if strings.Contains(body, "elsewhere") {
		t.Errorf("it leads elsewhere: %s", body)
	}
}
