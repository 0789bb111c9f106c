package shop

import (
	"embed"
	"html/template"
	"net/http"

	"storefront.internal/deploy/demoshop/proxy"
	"storefront.internal/deploy/demoshop/trail"
	"storefront.internal/deploy/stack/client"
)

// Config says where the parts of Storefront are.
type Config struct {
	// Storefront is the connection of the shop, as the shop's server calls it.
	Storefront client.Storefront
	// BrowserEdgeURL is the base URL of the edge for pages: the proxy.
	BrowserEdgeURL string
	Control        client.Internal
	EngineURL      string // of the demo engine
	SDK            []Script
}

// Script is a file of the browser SDK, as pages load it from the edge.
type Script struct{ URL, Integrity string }

// Shop serves the pages.
type Shop struct {
	cfg    Config
	pages  *template.Template
	carts  *carts
	orders *orders
	proxy  *proxy.Proxy
	trail  *trail.Trail
	engine *engineFaults
}

//go:embed templates static
var files embed.FS

// New makes a shop.
func New(cfg Config, p *proxy.Proxy, t *trail.Trail) (*Shop, error) {
	s := &Shop{cfg: cfg, carts: newCarts(), orders: newOrders(), proxy: p, trail: t,
		engine: newEngineFaults(cfg.EngineURL, cfg.Control)}
	var err error
	s.pages, err = template.New("").Funcs(template.FuncMap{"picture": pictureURL}).
		ParseFS(files, "templates/*.html")
	return s, err
}

// Handler serves the pages, the scripts and the panel.
func (s *Shop) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.home)
	mux.HandleFunc("GET /product/{item}", s.product)
	mux.HandleFunc("GET /cart", s.cart)
	mux.HandleFunc("POST /cart/add", s.addToCart)
	mux.HandleFunc("POST /cart/update", s.updateCart)
	mux.HandleFunc("POST /cart/remove", s.removeFromCart)
	mux.HandleFunc("GET /checkout", s.checkout)
	mux.HandleFunc("POST /checkout", s.placeOrder)
	mux.HandleFunc("GET /thanks/{order}", s.thanks)
	mux.HandleFunc("GET /account", s.account)
	mux.HandleFunc("POST /forget", s.forget)
	mux.HandleFunc("GET /away", s.away)
	mux.HandleFunc("GET /picture/{item}", picture)
	mux.Handle("GET /static/", http.FileServerFS(files))
	mux.HandleFunc("GET /panel/events", s.events)
	mux.HandleFunc("POST /panel/minted", s.minted)
	mux.HandleFunc("POST /panel/faults/{name}", s.breakOrMend)
	return s.secure(mux)
}

// secure sets the headers of every answer. The policy allows the shop's own files and the edge: the SDK needs
// nothing else.
func (s *Shop) secure(next http.Handler) http.Handler {
	policy := "default-src 'none'; script-src 'self' " + s.cfg.BrowserEdgeURL +
		"; style-src 'self'; img-src 'self'; " +
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'; " +
		"connect-src 'self' " + s.cfg.BrowserEdgeURL
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", policy)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Referrer-Policy", "same-origin")
		next.ServeHTTP(w, r)
	})
}
