//go:build web

package webtest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"storefront.internal/deploy/demoshop/trail"
	"storefront.internal/deploy/stack/poll"
)

// panel is what the demo shop's server knows: one event of its stream, which begins with every row.
type panel struct {
	Rows   []trail.Row    `json:"rows"`
	Count  trail.Count    `json:"count"`
	Faults map[string]int `json:"faults"`
	Queue  *struct {
		State       string `json:"state"`
		Unconfirmed int    `json:"unconfirmed"`
	} `json:"queue"`
}

// open are the rows that the engine has not created.
func (p panel) open() []trail.Row {
	return slices.DeleteFunc(slices.Clone(p.Rows), func(r trail.Row) bool { return r.Created > 0 })
}

// after are the rows of signals that became known after an earlier look. Those of earlier tests met faults.
func (p panel) after(earlier panel) []trail.Row {
	last := 0
	for _, r := range earlier.Rows {
		last = max(last, r.Number)
	}
	return slices.DeleteFunc(slices.Clone(p.Rows), func(r trail.Row) bool { return r.Number <= last })
}

func readPanel(ctx context.Context) (p panel, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, shared.demo.URL+"/panel/events", nil)
	if err != nil {
		return p, err
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return p, err
	}
	defer func() { _ = res.Body.Close() }()
	line, err := bufio.NewReader(res.Body).ReadString('\n')
	if err != nil {
		return p, err
	}
	return p, json.Unmarshal([]byte(strings.TrimPrefix(line, "data: ")), &p)
}

// awaitPanel waits until the panel shows something.
func awaitPanel(t *testing.T, what string, holds func(panel) bool) panel {
	t.Helper()
	var p panel
	check(t, poll.Within(t.Context(), 70*time.Second, what, func() (err error) {
		if p, err = readPanel(t.Context()); err == nil && !holds(p) {
			err = fmt.Errorf("count %+v, faults %v, queue %+v, open %+v", p.Count, p.Faults, p.Queue,
				p.open())
		}
		return err
	}))
	return p
}

// awaitEven waits until at least so many signals were minted, and the engine has each of them once.
func awaitEven(t *testing.T, atLeast int) panel {
	t.Helper()
	p := awaitPanel(t, "minted = counted", func(p panel) bool {
		return p.Count.Minted >= atLeast && p.Count.Minted == p.Count.Counted
	})
	if !slices.ContainsFunc(p.Rows, func(r trail.Row) bool { return r.Stored && r.Removed }) {
		t.Error("no row was seen in the browser's storage")
	}
	if p.Count.Doubled != 0 || p.Count.Refused != 0 {
		t.Errorf("count %+v", p.Count)
	}
	return p
}

const (
	firstCard = `[data-placement] a[href*="decision="]`
	ready     = `document.querySelector('` + firstCard + `')`
)

// A person walks from the home page to the thanks page. Every signal is created at the engine within three
// seconds, or as much longer as the machine computes slower than at its best. The pages have no serious
// accessibility fault at either width, light or dark.
func TestTheDemoShopIsWalked(t *testing.T) {
	pace := measurePace(t)
	before, err := readPanel(t.Context())
	check(t, err)
	v := visit(t, chromium(t), shared.demo.URL+"/")
	look := func(name string) {
		t.Helper()
		v.look(390, 844, "light")
		v.axe(name + " at 390 px")
		v.shoot(name + "-390")
		v.look(1280, 800, "dark")
		v.axe(name + " dark")
		v.shoot(name + "-dark")
		v.look(1280, 800, "light")
		v.axe(name)
		v.shoot(name)
	}
	v.look(1280, 800, "light")
	v.await(ready)
	v.awaitElement()
	awaitPanel(t, "impressions", func(p panel) bool { return p.Count.Counted > before.Count.Counted })
	look("home")
	v.click(firstCard)
	v.await(`location.pathname.startsWith('/product/') && document.readyState === 'complete'`)
	v.await(ready)
	look("product")
	v.click(`form[data-signal=addToCart] button`)
	v.await(`location.pathname === '/cart' && document.readyState === 'complete'`)
	check(t, v.Evaluate(v.ctx, `document.querySelector('.lines input[type=number]').value = 3`, nil))
	v.click(`form[data-signal=updateQuantity] button`)
	v.await(`document.readyState === 'complete' && document.querySelector('.lines input[type=number]')?.value === '3'
		&& document.querySelector('#rows li[data-type=update_quantity]')`)
	look("cart")
	v.click(`a[href="/checkout"]`)
	v.await(`location.pathname === '/checkout' && document.readyState === 'complete'`)
	if got := v.eval(`document.querySelector('input[name=attribution]').value`); !strings.HasPrefix(got, "1;") {
		t.Errorf("attribution %q", got)
	}
	look("checkout")
	v.click(`main form button`)
	v.await(`location.pathname.startsWith('/thanks/') && document.readyState === 'complete'`)
	// The page tells what it minted after it was loaded.
	awaitPanel(t, "a signal of each type", func(p panel) bool {
		return len(missingTypes(p.after(before))) == 0
	})
	p := awaitEven(t, before.Count.Minted+len(walkTypes()))
	look("thanks")
	v.to(shared.demo.URL + "/account")
	look("account")
	checkWalk(t, p.after(before), pace)
}

// walkTypes are the types of the signals of a walk.
func walkTypes() []string {
	return []string{"impression", "click", "add_to_cart", "update_quantity", "purchase"}
}

func missingTypes(rows []trail.Row) []string {
	return slices.DeleteFunc(walkTypes(), func(name string) bool {
		return slices.ContainsFunc(rows, func(r trail.Row) bool { return r.Type == name })
	})
}

// awaitElement waits until the custom element shows items. It shows those that the edge had at hand within
// 20 ms, which a busy machine may miss, so the page is opened again.
func (v *visitor) awaitElement() {
	v.t.Helper()
	check(v.t, poll.Within(v.ctx, time.Minute, "<sf-recommendations> shows items", func() error {
		const shown = `new Promise((f) => setTimeout(f, 1000)).then(() => document.querySelectorAll('sf-recommendations a').length)`
		if n := v.eval(shown); n == "0" {
			v.to(shared.demo.URL + "/")
			return errors.New("none")
		}
		return nil
	}))
	v.await(ready)
}

const createdWithin = 3 * time.Second // on a machine that has nothing else to do

// checkWalk checks the rows of a walk by the engine's own times.
func checkWalk(t *testing.T, rows []trail.Row, pace *pace) {
	t.Helper()
	all, err := shared.receipts(t.Context(), 0)
	check(t, err)
	received := map[string]receipt{}
	for _, r := range all {
		if r.Result == "created" {
			received[r.Interaction.SignalID] = r
		}
	}
	for _, row := range rows {
		created := received[row.SignalID].ReceivedAt
		took := created.Sub(row.MintedAt)
		slowdown := pace.slowdown(row.MintedAt, created)
		t.Logf("%-15s created after %5d ms, machine %.1f times slower than at best, %d requests", row.Type,
			took.Milliseconds(), slowdown, len(row.Attempts))
		if took > time.Duration(slowdown*float64(createdWithin)) || took < -time.Second {
			t.Errorf("%s %s was created after %s; requests: %+v", row.Type, row.SignalID, took, row.Attempts)
		}
		if len(row.Attempts) == 0 || row.Attempts[0].Outcome == "rejected" {
			t.Errorf("row %+v", row)
		}
	}
	if missing := missingTypes(rows); len(missing) > 0 {
		t.Errorf("no %v", missing)
	}
}
