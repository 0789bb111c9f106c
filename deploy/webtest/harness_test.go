//go:build web

package webtest

import (
	_ "embed"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"storefront.internal/deploy/stack/client"
)

//go:embed testdata/harness.html
var harnessPage string

// harness is the site of the harness page. Pages name a shopper in the query `s` and get that shopper's
// options of the SDK; what a page minted is written down here.
type harness struct {
	*httptest.Server
	mu      sync.Mutex
	options map[string]map[string]any
	minted  map[string][]string
	at      map[string]time.Time // when a signal was minted
}

func newHarness(t testing.TB) *harness {
	h := &harness{options: map[string]map[string]any{}, minted: map[string][]string{},
		at: map[string]time.Time{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", h.page)
	mux.HandleFunc("GET /away", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<!doctype html><title>away</title>")
	})
	mux.HandleFunc("POST /minted", h.mint)
	mux.HandleFunc("GET /sdk/{name}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		_, _ = w.Write(shared.sdk[r.PathValue("name")])
	})
	h.Server = httptest.NewServer(mux)
	t.Cleanup(h.Close)
	return h
}

// shopper sets the options of a shopper and returns the address of their page.
func (h *harness) shopper(name, edge string, shop client.Storefront, more map[string]any) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	o := map[string]any{"baseUrl": edge, "connectionId": shop.ConnectionID, "key": shop.Key}
	for k, v := range more {
		o[k] = v
	}
	h.options[name] = o
	return h.URL + "/?s=" + name
}

func (h *harness) page(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	text, err := json.Marshal(h.options[r.URL.Query().Get("s")])
	h.mu.Unlock()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(w, strings.Replace(harnessPage, "CONFIG", string(text), 1))
}

func (h *harness) mint(w http.ResponseWriter, r *http.Request) {
	var ids []string
	if err := json.NewDecoder(r.Body).Decode(&ids); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	name := r.URL.Query().Get("s")
	for _, id := range ids {
		if !slices.Contains(h.minted[name], id) {
			h.minted[name] = append(h.minted[name], id)
			h.at[id] = time.Now()
		}
	}
}

// of returns what a shopper minted.
func (h *harness) of(name string) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.minted[name])
}
