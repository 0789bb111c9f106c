package shop

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"storefront.internal/deploy/stack/client"
	"storefront.internal/shared/ident"
)

// page is what every template gets.
type page struct {
	Title string
	SDK   sdkConfig
	// Scripts are those of the SDK.
	Scripts []Script
	Items   int // in the cart
	Data    any
}

// sdkConfig is what the pages' script passes to the SDK.
type sdkConfig struct {
	BaseURL      string `json:"baseUrl"`
	ConnectionID string `json:"connectionId"`
	Key          string `json:"key"`
}

func (s *Shop) show(w http.ResponseWriter, r *http.Request, name, title string, data any) {
	var text bytes.Buffer
	err := s.pages.ExecuteTemplate(&text, name, page{
		Title: title, Items: s.carts.of(r).items(), Data: data,
		SDK:     sdkConfig{s.cfg.BrowserEdgeURL, s.cfg.Storefront.ConnectionID, s.cfg.Storefront.Key},
		Scripts: s.cfg.SDK,
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = text.WriteTo(w) // the browser is gone when this fails
}

func (s *Shop) home(w http.ResponseWriter, r *http.Request) { s.show(w, r, "home.html", "Home", nil) }

func (s *Shop) away(w http.ResponseWriter, r *http.Request) {
	from := r.URL.Query().Get("from")
	if !strings.HasPrefix(from, "/") || strings.HasPrefix(from, "//") || strings.Contains(from, `\\`) {
		from = "/" // of this shop only
	}
	s.show(w, r, "away.html", "You left", from)
}

func (s *Shop) account(w http.ResponseWriter, r *http.Request) {
	s.show(w, r, "account.html", "Your account", r.URL.Query().Get("forgotten") != "")
}

// productPage is one product and the Decision that led to it, if any.
type productPage struct {
	product
	Decision string
}

func (s *Shop) product(w http.ResponseWriter, r *http.Request) {
	p, err := s.readProduct(r, r.PathValue("item"))
	if err != nil {
		s.fail(w, err)
		return
	}
	s.show(w, r, "product.html", p.Title, productPage{p, r.URL.Query().Get("decision")})
}

func (s *Shop) cart(w http.ResponseWriter, r *http.Request) {
	s.show(w, r, "cart.html", "Your cart", s.carts.of(r))
}

func (s *Shop) checkout(w http.ResponseWriter, r *http.Request) {
	s.show(w, r, "checkout.html", "Checkout", s.carts.of(r))
}

func (s *Shop) addToCart(w http.ResponseWriter, r *http.Request) {
	p, err := s.readProduct(r, r.FormValue("item"))
	if err != nil {
		s.fail(w, err)
		return
	}
	l := line{ItemID: p.ItemID, VariantID: r.FormValue("variant"), Title: p.Title, Quantity: quantity(r),
		Decision: r.FormValue("decision")}
	for _, v := range p.Variants {
		if v.VariantID == l.VariantID {
			l.Variant, l.Price = v.Title, v.Price
		}
	}
	s.carts.change(w, r, func(c *cart) { c.add(l) })
	http.Redirect(w, r, "/cart", http.StatusSeeOther)
}

func (s *Shop) updateCart(w http.ResponseWriter, r *http.Request) {
	s.carts.change(w, r, func(c *cart) {
		c.set(r.FormValue("item"), r.FormValue("variant"), r.FormValue("decision"), quantity(r))
	})
	http.Redirect(w, r, "/cart", http.StatusSeeOther)
}

func (s *Shop) removeFromCart(w http.ResponseWriter, r *http.Request) {
	s.carts.change(w, r, func(c *cart) {
		c.set(r.FormValue("item"), r.FormValue("variant"), r.FormValue("decision"), 0)
	})
	http.Redirect(w, r, "/cart", http.StatusSeeOther)
}

// placeOrder makes an order of the cart. A real shop keeps `attribution` with the order: a checkout on
// another host has no other way to know which Decision led to a line.
func (s *Shop) placeOrder(w http.ResponseWriter, r *http.Request) {
	c := s.carts.of(r)
	if len(c.Lines) == 0 {
		http.Redirect(w, r, "/cart", http.StatusSeeOther)
		return
	}
	id := s.orders.place(c.Lines, r.FormValue("attribution"))
	s.carts.change(w, r, func(c *cart) { c.Lines = nil })
	http.Redirect(w, r, "/thanks/"+id, http.StatusSeeOther)
}

func (s *Shop) thanks(w http.ResponseWriter, r *http.Request) {
	o, known := s.orders.find(r.PathValue("order"))
	if !known {
		http.NotFound(w, r)
		return
	}
	s.show(w, r, "thanks.html", "Thank you", o)
}

// forget asks Storefront to erase the visitor of this browser.
func (s *Shop) forget(w http.ResponseWriter, r *http.Request) {
	visitor := r.FormValue("visitor")
	if !ident.Valid(ident.Visitor, visitor) {
		http.Error(w, "no visitor is known in this browser", http.StatusBadRequest)
		return
	}
	if err := s.cfg.Control.EraseVisitor(r.Context(), s.cfg.Storefront.ConnectionID, visitor); err != nil {
		s.fail(w, err)
		return
	}
	http.Redirect(w, r, "/account?forgotten=1", http.StatusSeeOther)
}

// fail answers 404 for what the catalog does not have and 502 for everything else.
func (s *Shop) fail(w http.ResponseWriter, err error) {
	var status *client.StatusError
	if errors.As(err, &status) && status.Status == http.StatusNotFound {
		http.Error(w, "no such product", http.StatusNotFound)
		return
	}
	http.Error(w, "Storefront does not answer: "+err.Error(), http.StatusBadGateway)
}

// product is what the pages show of a catalog item.
type product struct {
	ItemID, Title, Brand string
	Variants             []variant
}

type variant struct{ VariantID, Title, Price string }

type money struct {
	Amount   string `json:"amount"`
	Currency string `json:"currency"`
}

func (s *Shop) readProduct(r *http.Request, itemID string) (product, error) {
	var a struct {
		Item struct {
			ItemID string            `json:"item_id"`
			Title  map[string]string `json:"title"`
			Brand  string            `json:"brand"`
		} `json:"item"`
		Variants []struct {
			VariantID        string            `json:"variant_id"`
			Title            map[string]string `json:"title"`
			Price            money             `json:"price"`
			PromotionalPrice *money            `json:"promotional_price"`
		} `json:"variants"`
	}
	answer := s.cfg.Storefront.GetItem(r.Context(), url.PathEscape(itemID), "")
	if err := answer.Decode(&a); err != nil {
		return product{}, err
	}
	p := product{ItemID: a.Item.ItemID, Title: inEnglish(a.Item.Title), Brand: a.Item.Brand}
	for _, v := range a.Variants {
		price := v.Price
		if v.PromotionalPrice != nil {
			price = *v.PromotionalPrice
		}
		p.Variants = append(p.Variants, variant{v.VariantID, inEnglish(v.Title),
			fmt.Sprintf("%s %s", price.Currency, price.Amount)})
	}
	return p, nil
}

// inEnglish is the English text, or any other.
func inEnglish(t map[string]string) string {
	if text, ok := t["en"]; ok {
		return text
	}
	for _, text := range t {
		return text
	}
	return ""
}

// ForSDK is the order as the SDK takes it; the template writes it as JSON.
func (o order) ForSDK() any {
	lines := []map[string]any{}
	for _, l := range o.Lines {
		lines = append(lines, map[string]any{"itemId": l.ItemID, "variantId": l.VariantID,
			"quantity": l.Quantity, "decision": l.Decision})
	}
	return map[string]any{"order": o.ID, "lines": lines}
}
