package tiendanube

import (
	"context"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"storefront.internal/deploy/fakeprovider/bucket"
	"storefront.internal/deploy/fakeprovider/stores"
)

func (f *Fake) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /apps/authorize/token", f.token)
	for _, kind := range []string{stores.Products, stores.Categories, stores.Orders} {
		mux.HandleFunc("GET /{version}/{store}/"+kind, f.list(kind))
		mux.HandleFunc("GET /{version}/{store}/"+kind+"/{id}", f.one(kind))
	}
	mux.HandleFunc("GET /{version}/{store}/products/{id}/variants", f.variants)
	mux.HandleFunc("GET /{version}/{store}/store", f.store)
	mux.HandleFunc("GET /{version}/{store}/webhooks", f.listHooks)
	mux.HandleFunc("POST /{version}/{store}/webhooks", f.createHook)
	mux.HandleFunc("GET /{version}/{store}/webhooks/{id}", f.showHook)
	mux.HandleFunc("PUT /{version}/{store}/webhooks/{id}", f.changeHook)
	mux.HandleFunc("DELETE /{version}/{store}/webhooks/{id}", f.deleteHook)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { refuse(w, http.StatusNotFound) })
	version := regexp.MustCompile(`^/(v1|\d{4}-\d{2})/([^/]+)/`)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/apps/authorize/token" {
			mux.ServeHTTP(w, r)
			return
		}
		place := version.FindStringSubmatch(r.URL.Path)
		if place == nil {
			refuse(w, http.StatusNotFound)
			return
		}
		f.admit(w, r, place[2], mux)
	})
}

type storeKey struct{}

// storeOf is the store that a request was admitted to.
func storeOf(r *http.Request) *stores.Store {
	s, _ := r.Context().Value(storeKey{}).(*stores.Store)
	return s
}

// admit is what a call passes before its route is looked at.
func (f *Fake) admit(w http.ResponseWriter, r *http.Request, store string, next http.Handler) {
	if r.UserAgent() == "" {
		writeJSON(w, http.StatusBadRequest, map[string]string{"error": "Missing a valid User-Agent. Tell us your app's name and a contact."})
		return
	}
	token, ok := bearer(r)
	if !ok || !strings.HasPrefix(token, stores.TokenPrefix) {
		refuse(w, http.StatusUnauthorized)
		return
	}
	s := f.Of(store)
	switch s.Access.Check(token) {
	case stores.Unknown:
		refuse(w, http.StatusUnauthorized)
		return
	case stores.Unpaid:
		refuse(w, http.StatusPaymentRequired)
		return
	}
	state, ok := s.Bucket.Put(1)
	limits(w, state)
	if !ok {
		refuse(w, http.StatusTooManyRequests)
		return
	}
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); r.Method != http.MethodGet && r.Method != http.MethodDelete && kind != "application/json" {
		refuse(w, http.StatusUnsupportedMediaType)
		return
	}
	w.Header().Set("X-Main-Language", Language)
	next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), storeKey{}, s)))
}

// bearer reads the token: the old pages of the documentation name the header Authentication, the newest Authorization.
func bearer(r *http.Request) (string, bool) {
	for _, name := range []string{"Authentication", "Authorization"} {
		scheme, token, ok := strings.Cut(r.Header.Get(name), " ")
		if ok && strings.EqualFold(scheme, "bearer") {
			return token, true
		}
	}
	return "", false
}

// limits tells of the bucket; the reset is in milliseconds until it is empty.
func limits(w http.ResponseWriter, s bucket.State) {
	w.Header().Set("X-Rate-Limit-Limit", strconv.Itoa(int(s.Capacity)))
	w.Header().Set("X-Rate-Limit-Remaining", strconv.Itoa(int(s.Room)))
	w.Header().Set("X-Rate-Limit-Reset", strconv.FormatInt(s.Empties.Milliseconds(), 10))
}

// token exchanges a code: the store's id, or anything else for the first store.
func (f *Fake) token(w http.ResponseWriter, r *http.Request) {
	var in struct {
		ClientID     json.RawMessage `json:"client_id"`
		ClientSecret string          `json:"client_secret"`
		GrantType    string          `json:"grant_type"`
		Code         string          `json:"code"`
	}
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16)).Decode(&in)
	if err != nil || in.ClientSecret != f.config.AppSecret || in.GrantType != "authorization_code" || in.Code == "" {
		writeJSON(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant", "error_description": "The authorization code has expired"})
		return
	}
	store := f.config.FirstStore
	if _, err := strconv.ParseUint(in.Code, 10, 63); err == nil {
		store = in.Code
	}
	writeJSON(w, http.StatusOK, map[string]any{
		"access_token": stores.TokenPrefix + in.Code, "token_type": "bearer", "scope": "read_products,read_orders", "user_id": number(store),
	})
}

// number writes an id as the integer that it is at the provider; a test's other ids stay text.
func number(id string) any {
	if n, err := strconv.ParseInt(id, 10, 64); err == nil {
		return n
	}
	return id
}

const jsonType = "application/json; charset=utf-8"

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", jsonType)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the caller is gone when this fails
}

// refuse writes the provider's error of a status.
func refuse(w http.ResponseWriter, status int) { refuseWith(w, status, http.StatusText(status)) }

func refuseWith(w http.ResponseWriter, status int, description string) {
	if status == http.StatusBadRequest {
		writeJSON(w, status, map[string]string{"error": description})
		return
	}
	writeJSON(w, status, map[string]any{"code": status, "message": http.StatusText(status), "description": description})
}

func unprocessable(w http.ResponseWriter, field, message string) {
	writeJSON(w, http.StatusUnprocessableEntity, map[string][]string{field: {message}})
}

func lastPage(w http.ResponseWriter, n int) {
	refuseWith(w, http.StatusNotFound, fmt.Sprintf("Last page is %d", n))
}
