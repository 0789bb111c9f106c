package woocommerce

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"storefront.internal/deploy/fakeprovider/docs"
	"storefront.internal/deploy/fakeprovider/stores"
)

const root = "/{store}/wp-json/wc/v3"

func (f *Fake) routes() http.Handler {
	mux := http.NewServeMux()
	on := func(method, path string, do http.HandlerFunc) { mux.Handle(method+" "+root+path, f.admit(do)) }
	on("GET", "/products", f.list(stores.Products))
	on("GET", "/products/{id}", f.one(stores.Products, "woocommerce_rest_product_invalid_id"))
	on("GET", "/products/{id}/{below}", f.below)
	on("GET", "/products/{id}/variations/{variation}", f.variation)
	on("GET", "/products/categories", f.list(stores.Categories))
	on("GET", "/orders", f.list(stores.Orders))
	on("GET", "/orders/{id}", f.one(stores.Orders, "woocommerce_rest_shop_order_invalid_id"))
	on("GET", "/settings/general", f.settings)
	on("GET", "/settings/general/{id}", f.setting)
	on("GET", "/data/currencies/current", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, object{"code": Currency, "name": "Peso argentino", "symbol": "$"})
	})
	on("GET", "/system_status", f.systemStatus)
	on("GET", "/webhooks", f.listHooks)
	on("POST", "/webhooks", f.createHook)
	on("GET", "/webhooks/{id}", f.showHook)
	on("PUT", "/webhooks/{id}", f.changeHook)
	on("DELETE", "/webhooks/{id}", f.deleteHook)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { refuse(w, http.StatusNotFound, "rest_no_route") })
	return mux
}

type storeKey struct{}

func storeOf(r *http.Request) *stores.Store {
	s, _ := r.Context().Value(storeKey{}).(*stores.Store)
	return s
}

// admit reads the key from Basic auth, or from the query where a host strips the header.
func (f *Fake) admit(next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key, secret, ok := r.BasicAuth()
		if q := r.URL.Query(); !ok {
			key, secret = q.Get("consumer_key"), q.Get("consumer_secret")
		}
		if secret == "" || !strings.HasPrefix(key, stores.TokenPrefix) {
			refuse(w, http.StatusUnauthorized, "woocommerce_rest_cannot_view")
			return
		}
		s := f.Of(r.PathValue("store"))
		switch s.Access.Check(key) {
		case stores.Unknown:
			refuse(w, http.StatusUnauthorized, "woocommerce_rest_authentication_error")
		case stores.Unpaid:
			refuse(w, http.StatusPaymentRequired, "store_suspended") // the host's answer
		default:
			next(w, r.WithContext(context.WithValue(r.Context(), storeKey{}, s)))
		}
	})
}

func numberOf(text string) (int64, error) { return strconv.ParseInt(text, 10, 64) }

func (f *Fake) find(r *http.Request, kind, name string) (docs.Doc, bool) {
	id, err := numberOf(r.PathValue(name))
	if err != nil {
		return docs.Doc{}, false
	}
	return storeOf(r).Tables[kind].Get(id)
}

func (f *Fake) one(kind, missing string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		d, ok := f.find(r, kind, "id")
		if !ok {
			refuse(w, http.StatusNotFound, missing)
			return
		}
		writeJSON(w, http.StatusOK, project(d.JSON, r.URL.Query().Get("_fields")))
	}
}

// below serves products/{id}/variations and products/categories/{id}, which one pattern has to tell apart.
func (f *Fake) below(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.PathValue("id") == "categories":
		r.SetPathValue("id", r.PathValue("below"))
		f.one(stores.Categories, "woocommerce_rest_term_invalid")(w, r)
	case r.PathValue("below") == "variations":
		f.variationsOf(w, r)
	default:
		refuse(w, http.StatusNotFound, "rest_no_route")
	}
}

func (f *Fake) variation(w http.ResponseWriter, r *http.Request) {
	p, ok := f.find(r, stores.Products, "id")
	d, there := f.find(r, variations, "variation")
	for _, id := range variationIDs(p.JSON) {
		if ok && there && id == d.ID {
			writeJSON(w, http.StatusOK, d.JSON)
			return
		}
	}
	refuse(w, http.StatusNotFound, "woocommerce_rest_product_variation_invalid_id")
}

func general() []object {
	return []object{
		{"id": "woocommerce_currency", "label": "Currency", "type": "select", "default": "USD", "value": Currency},
		{"id": "woocommerce_default_country", "label": "Country", "type": "select", "default": "US:CA", "value": "AR:S"},
	}
}

func (f *Fake) settings(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, general())
}

func (f *Fake) setting(w http.ResponseWriter, r *http.Request) {
	for _, s := range general() {
		if s["id"] == r.PathValue("id") {
			writeJSON(w, http.StatusOK, s)
			return
		}
	}
	refuse(w, http.StatusNotFound, "rest_setting_setting_invalid")
}

func (f *Fake) systemStatus(w http.ResponseWriter, r *http.Request) {
	writeJSON(w, http.StatusOK, object{
		"environment": object{"home_url": site(storeOf(r).ID), "site_url": site(storeOf(r).ID), "version": "9.9.0", "language": "es_AR"},
		"settings":    object{"currency": Currency, "currency_symbol": "$", "api_enabled": true},
	})
}

const jsonType = "application/json; charset=UTF-8"

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", jsonType)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the caller is gone when this fails
}

// refuse writes the provider's form of an error.
func refuse(w http.ResponseWriter, status int, code string) {
	writeJSON(w, status, object{"code": code, "message": http.StatusText(status), "data": object{"status": status}})
}

// project keeps the members that `_fields` names; all when it names none.
func project(doc []byte, fields string) json.RawMessage {
	if fields == "" {
		return doc
	}
	members, err := docs.ParseMembers(doc)
	if err != nil {
		return doc
	}
	kept := docs.Members{}
	for name := range strings.SplitSeq(fields, ",") {
		if value, ok := members[strings.TrimSpace(name)]; ok {
			kept[strings.TrimSpace(name)] = value
		}
	}
	return marshal(kept)
}
