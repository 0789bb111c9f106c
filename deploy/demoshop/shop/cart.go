package shop

import (
	"crypto/rand"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

const (
	maxCarts = 1000 // the oldest goes first
	maxLines = 20
)

// line is one line of a cart or an order. Decision is the recommendation that led to it.
type line struct {
	ItemID, VariantID, Title, Variant, Price, Decision string
	Quantity                                           int
}

func (l line) is(item, variant, decision string) bool {
	return l.ItemID == item && l.VariantID == variant && l.Decision == decision
}

type cart struct{ Lines []line }

func (c cart) items() int {
	n := 0
	for _, l := range c.Lines {
		n += l.Quantity
	}
	return n
}

func (c *cart) add(more line) {
	for i, l := range c.Lines {
		if l.is(more.ItemID, more.VariantID, more.Decision) {
			c.Lines[i].Quantity += more.Quantity
			return
		}
	}
	if len(c.Lines) < maxLines {
		c.Lines = append(c.Lines, more)
	}
}

// set changes the quantity of a line; 0 removes it.
func (c *cart) set(item, variant, decision string, quantity int) {
	for i, l := range c.Lines {
		if l.is(item, variant, decision) {
			c.Lines[i].Quantity = quantity
		}
	}
	c.Lines = slices.DeleteFunc(c.Lines, func(l line) bool { return l.Quantity == 0 })
}

// quantity is the form's, 0 to 99; 1 when it is absent.
func quantity(r *http.Request) int {
	n, err := strconv.Atoi(r.FormValue("quantity"))
	if err != nil {
		return 1
	}
	return min(max(n, 0), 99)
}

// carts are the carts of all browsers, by cookie.
type carts struct {
	mu    sync.Mutex
	byID  map[string]cart
	order []string
}

func newCarts() *carts { return &carts{byID: map[string]cart{}} }

const cookieName = "cart"

func (c *carts) of(r *http.Request) cart {
	cookie, err := r.Cookie(cookieName)
	if err != nil {
		return cart{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return cart{slices.Clone(c.byID[cookie.Value].Lines)}
}

// change changes the cart of a browser, which gets a cookie when it has none.
func (c *carts) change(w http.ResponseWriter, r *http.Request, do func(*cart)) {
	cookie, err := r.Cookie(cookieName)
	if err != nil {
		cookie = &http.Cookie{Name: cookieName, Value: rand.Text(), Path: "/", HttpOnly: true,
			SameSite: http.SameSiteLaxMode}
		http.SetCookie(w, cookie)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	one, known := c.byID[cookie.Value]
	if !known {
		c.order = append(c.order, cookie.Value)
		if len(c.order) > maxCarts {
			delete(c.byID, c.order[0])
			c.order = slices.Delete(c.order, 0, 1)
		}
	}
	do(&one)
	c.byID[cookie.Value] = one
}

// order is what was bought.
type order struct {
	ID          string
	Lines       []line
	Attribution string
}

type orders struct {
	mu   sync.Mutex
	next int64
	byID map[string]order
}

// newOrders begins with a number that no earlier run gave out.
func newOrders() *orders { return &orders{next: time.Now().Unix(), byID: map[string]order{}} }

func (o *orders) place(lines []line, attribution string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.next++
	id := strconv.FormatInt(o.next, 10)
	delete(o.byID, strconv.FormatInt(o.next-maxCarts, 10))
	o.byID[id] = order{ID: id, Lines: lines, Attribution: attribution}
	return id
}

func (o *orders) find(id string) (order, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	found, known := o.byID[id]
	return found, known
}
