package woocommerce

import (
	"net/http"
	"strings"

	"storefront.internal/deploy/fakeprovider/stores"
)

const root = "/{store}/wp-json/wc/v3"

func (f *Fake) routes() http.Handler {
	mux := http.NewServeMux()
	on := func(method, path string, do http.HandlerFunc) { mux.Handle(method+" "+root+path, f.admit(do)) }
	on("GET", "/products", listDocuments(stores.Products))
	on("GET", "/products/{id}", getDocument(stores.Products, "woocommerce_rest_product_invalid_id"))
	on("GET", "/products/{id}/{below}", below)
	on("GET", "/products/categories", listDocuments(stores.Categories))
	on("GET", "/orders", listDocuments(stores.Orders))
	on("GET", "/orders/{id}", getDocument(stores.Orders, "woocommerce_rest_shop_order_invalid_id"))
	on("GET", "/system_status", systemStatus)
	on("GET", "/webhooks", listHooks)
	on("POST", "/webhooks", f.createHook)
	on("PUT", "/webhooks/{id}", f.changeHook)
	on("DELETE", "/webhooks/{id}", f.deleteHook)
	mux.HandleFunc(
		"/",
		func(w http.ResponseWriter, _ *http.Request) { refuse(w, http.StatusNotFound, "rest_no_route") },
	)
	return mux
}

// admit reads the key from Basic auth, or from the query where a host strips the header.
func (f *Fake) admit(next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key, secret, ok := r.BasicAuth()
		if q := r.URL.Query(); !ok {
			key, secret = q.Get("consumer_key"), q.Get("consumer_secret")
		}
		if secret == "" || !strings.HasPrefix(key, stores.TokenPrefix) { // does not open a store
			refuse(w, http.StatusUnauthorized, "woocommerce_rest_cannot_view")
			return
		}
		s := f.Store(r.PathValue("store"))
		switch status := s.Access.Check(key); status {
		case http.StatusOK:
			next(w, stores.WithStore(r, s))
		case http.StatusPaymentRequired:
			refuse(w, status, "store_suspended") // the host's answer
		default:
			refuse(w, status, "woocommerce_rest_authentication_error")
		}
	})
}

// refuse writes the provider's form of an error.
func refuse(w http.ResponseWriter, status int, code string) {
	stores.WriteJSON(w, status, object{
		"code": code, "message": http.StatusText(status), "data": object{"status": status},
	})
}

func refuseParam(w http.ResponseWriter, name string) {
	stores.WriteJSON(w, http.StatusBadRequest, object{
		"code": "rest_invalid_param", "message": "Invalid parameter(s): " + name,
		"data": object{"status": http.StatusBadRequest, "params": object{name: "invalid"}},
	})
}
