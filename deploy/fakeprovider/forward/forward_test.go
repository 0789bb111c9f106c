package forward

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// seen is a request that control got.
type seen struct {
	path, body string
	header     http.Header
}

func newReceiver(t *testing.T, status int) (receiver *Receiver, got *[]seen) {
	t.Helper()
	got = &[]seen{}
	control := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		*got = append(*got, seen{r.URL.EscapedPath(), string(body), r.Header.Clone()})
		w.Header().Set("Retry-After", "2")
		w.WriteHeader(status)
	}))
	t.Cleanup(control.Close)
	return New(Config{Control: control.URL,
		Tokens: map[string]string{"tiendanube": "tn", "shopify": "sh", "woocommerce": "wc"}}), got
}

func deliver(f *Receiver, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r)
	return w
}

func TestForwardsAsAConnectorDoes(t *testing.T) {
	t.Parallel()
	f := func(provider, token string, sent, want map[string]string) {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			receiver, got := newReceiver(t, 202)
			var headers []string
			for name, value := range sent {
				headers = append(headers, name, value)
			}
			if w := deliver(receiver, "POST", "/hooks/"+provider+"/whe_1", "raw \x00 bytes\n",
				headers...); w.Code != 202 || w.Body.Len() != 0 {
				t.Fatalf("answered %d %s", w.Code, w.Body)
			}
			one := (*got)[0]
			if one.path != "/internal/v1/webhooks/"+provider+"/whe_1" || one.body != "raw \x00 bytes\n" {
				t.Errorf("forwarded %+v", one)
			}
			want["Authorization"], want["Content-Type"] = "Bearer "+token, "application/octet-stream"
			for _, name := range []string{"Authorization", "Content-Type", "X-Provider-Signature",
				"X-Provider-Topic", "X-Provider-Delivery-Id", "X-Provider-Triggered-At"} {
				if one.header.Get(name) != want[name] {
					t.Errorf("%s is %q, want %q", name, one.header.Get(name), want[name])
				}
			}
		})
	}
	f("tiendanube", "tn", map[string]string{"x-linkedstore-hmac-sha256": "ab"},
		map[string]string{"X-Provider-Signature": "ab"})
	f("shopify", "sh",
		map[string]string{"X-Shopify-Hmac-Sha256": "c=", "X-Shopify-Topic": "products/update",
			"X-Shopify-Event-Id": "e", "X-Shopify-Triggered-At": "t"},
		map[string]string{"X-Provider-Signature": "c=", "X-Provider-Topic": "products/update",
			"X-Provider-Delivery-Id": "e", "X-Provider-Triggered-At": "t"})
	f("woocommerce", "wc",
		map[string]string{"X-WC-Webhook-Signature": "d=", "X-WC-Webhook-Topic": "product.updated",
			"X-WC-Webhook-Delivery-ID": "i"},
		map[string]string{"X-Provider-Signature": "d=", "X-Provider-Topic": "product.updated",
			"X-Provider-Delivery-Id": "i"})
}

func TestAnswersOfItsOwn(t *testing.T) {
	t.Parallel()
	receiver, got := newReceiver(t, 202)
	f := func(name string, status int, method, path, body string, headers ...string) {
		t.Run(name, func(t *testing.T) {
			if w := deliver(receiver, method, path, body, headers...); w.Code != status {
				t.Errorf("answered %d, want %d", w.Code, status)
			}
		})
	}
	f("ping", 200, "POST", "/hooks/woocommerce/whe_1", "webhook_id=7001")
	f("no ping", 401, "POST", "/hooks/woocommerce/whe_1", "webhook_id=7001&x=1")
	f("another's ping", 401, "POST", "/hooks/tiendanube/whe_1", "webhook_id=7001")
	f("unsigned", 401, "POST", "/hooks/shopify/whe_1", "{}")
	f("unknown provider", 404, "POST", "/hooks/vtex/whe_1", "{}")
	f("short path", 404, "POST", "/hooks", "{}")
	f("method", 405, "GET", "/hooks/shopify/whe_1", "")
	f("too large", 413, "POST", "/hooks/shopify/whe_1", strings.Repeat("x", 5<<20+1), "X-Shopify-Hmac-Sha256",
		"a")
	if len(*got) != 0 {
		t.Errorf("forwarded %d", len(*got))
	}
}

func TestPassesTheAnswerBack(t *testing.T) {
	t.Parallel()
	for _, status := range []int{401, 413, 503} {
		receiver, _ := newReceiver(t, status)
		w := deliver(receiver, "POST", "/tiendanube/whe_1", "{}", "X-Linkedstore-Hmac-Sha256", "a")
		if w.Code != status || w.Header().Get("Retry-After") != "2" {
			t.Errorf("answered %d %v, want %d", w.Code, w.Header(), status)
		}
	}
	gone := New(Config{Control: "http://127.0.0.1:1", Tokens: map[string]string{"tiendanube": "tn"}})
	if w := deliver(gone, "POST", "/tiendanube/whe_1", "{}", "X-Linkedstore-Hmac-Sha256",
		"a"); w.Code != 502 {
		t.Errorf("answered %d", w.Code)
	}
}
