//go:build web

package webtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"storefront.internal/deploy/demoshop/trail"
)

// Each button of the demo shop breaks what it says, and after it is mended as many signals are at the engine
// as were minted.
func TestEachButtonLosesNothing(t *testing.T) {
	v := visit(t, chromium(t), shared.demo.URL+"/")
	v.look(1280, 900, "light")
	v.await(ready)
	b := &buttons{v, t}
	// The impression counts only after the page was looked at; the buttons begin after it.
	awaitEven(t, 1)
	t.Run("network off", b.networkOff)
	t.Run("edge answers 503", b.unavailable)
	t.Run("cut the answer", b.cutAnswer)
	t.Run("send it twice", b.sendTwice)
	t.Run("engine refuses its token", b.engineToken)
	t.Run("engine does not answer", b.engineSilent)
	t.Run("my clock is off", b.clock)
	t.Run("close and come back", b.leave)
	t.Run("two tabs", b.twoTabs)
}

type buttons struct {
	v *visitor
	t *testing.T
}

func fault(name string) string { return fmt.Sprintf(`button[data-fault="%s"]`, name) }

// clickProduct goes home and then to the first product, by which a click is minted. It returns how many
// signals there were before.
func (b *buttons) clickProduct(t *testing.T) int {
	t.Helper()
	p, err := readPanel(t.Context())
	check(t, err)
	b.v.to(shared.demo.URL + "/")
	b.v.await(ready)
	b.v.click(firstCard)
	b.v.await(`location.pathname.startsWith('/product/') && document.readyState === 'complete'`)
	return p.Count.Minted
}

// outcomes are the outcomes of the attempts of the rows from a number on.
func outcomes(p panel, after int) (all []string) {
	for _, r := range p.Rows {
		if r.Number > after {
			for _, a := range r.Attempts {
				all = append(all, a.Outcome)
			}
		}
	}
	return all
}

func isOn(name string) func(panel) bool {
	return func(p panel) bool { _, on := p.Faults[name]; return on }
}

func isOff(name string) func(panel) bool {
	return func(p panel) bool { _, on := p.Faults[name]; return !on }
}

// networkOff: the page that clicks cannot send, the next one can.
func (b *buttons) networkOff(t *testing.T) {
	before := b.onProduct(t, func() {
		b.v.click(fault("network-off"))
		awaitPanel(t, "the network is off", isOn("network-off"))
	})
	p := awaitPanel(t, "a signal is held", func(p panel) bool { return p.Count.Minted > p.Count.Counted })
	b.v.shoot("panel-network-off")
	if !slices.Contains(outcomes(p, before), "no answer") {
		t.Errorf("outcomes %v", outcomes(p, before))
	}
	b.v.click(fault("network-off"))
	awaitPanel(t, "the network is on", isOff("network-off"))
	b.v.to(shared.demo.URL + "/")
	awaitEven(t, before+1)
}

// onProduct opens a product page, breaks something there and adds the product to the cart.
func (b *buttons) onProduct(t *testing.T, breaks func()) int {
	t.Helper()
	b.clickProduct(t)
	p := awaitEven(t, 1)
	breaks()
	b.v.click(`form[data-signal=addToCart] button`)
	b.v.await(`location.pathname === '/cart' && document.readyState === 'complete'`)
	return p.Count.Minted
}

// unavailable: the page that ends does not read its answer, the next one does and then waits.
func (b *buttons) unavailable(t *testing.T) {
	before := b.onProduct(t, func() {
		b.v.click(fault("unavailable"))
		awaitPanel(t, "the edge answers 503", isOn("unavailable"))
	})
	awaitPanel(t, "a 503", func(p panel) bool { return slices.Contains(outcomes(p, before), "503") })
	b.v.shoot("panel-503")
	p := awaitEven(t, before+1)
	for _, r := range p.Rows {
		refused := 0
		for _, a := range r.Attempts {
			if a.Outcome == "503" {
				refused++
			}
		}
		if refused > 2 {
			t.Errorf("%d requests with a signal were answered 503: Retry-After was not heeded", refused)
		}
	}
}

func (b *buttons) cutAnswer(t *testing.T) {
	before := b.onProduct(t, func() {
		b.v.click(fault("cut-answer"))
		awaitPanel(t, "the answer will be cut", isOn("cut-answer"))
	})
	p := awaitEven(t, before+1)
	if all := outcomes(p, before); !slices.Contains(all, "answer cut") {
		t.Errorf("outcomes %v", all)
	}
}

func (b *buttons) sendTwice(t *testing.T) {
	b.clickProduct(t)
	p := awaitEven(t, 1)
	b.v.click(fault("send-twice"))
	awaitPanel(t, "a duplicate", func(p panel) bool {
		return slices.ContainsFunc(p.Rows, func(r trail.Row) bool {
			return slices.ContainsFunc(r.Attempts, func(a trail.Attempt) bool {
				return a.Form == "sent twice" && a.Outcome == "duplicate"
			})
		})
	})
	awaitEven(t, p.Count.Minted)
}

func (b *buttons) engineToken(t *testing.T) {
	before := b.onProduct(t, func() {
		b.v.click(fault("engine-token"))
		awaitPanel(t, "the engine refuses", isOn("engine-token"))
	})
	awaitPanel(t, "blocked", func(p panel) bool { return p.Queue != nil && p.Queue.State == "blocked" })
	b.v.await(`document.getElementById('queue').textContent.includes('blocked')`)
	b.v.shoot("panel-blocked")
	b.v.click(fault("engine-token"))
	awaitPanel(t, "running", func(p panel) bool { return p.Queue != nil && p.Queue.State == "running" })
	awaitEven(t, before+1)
}

func (b *buttons) engineSilent(t *testing.T) {
	before := b.onProduct(t, func() { b.v.click(fault("engine-silent")) })
	p := awaitEven(t, before+1)
	awaitPanel(t, "the engine is asked again", func(q panel) bool {
		p = q
		return slices.ContainsFunc(p.Rows, func(r trail.Row) bool {
			return r.Number > before && r.Exists > 0
		})
	})
}

// clock: the first Decision corrects the page's clock.
func (b *buttons) clock(t *testing.T) {
	b.v.click(`button[data-act=clock]`)
	b.v.await(`document.querySelector('button[data-act=clock]')?.getAttribute('aria-pressed') === 'true'`)
	if got := b.v.eval(`Math.round((Date.now() - performance.now() - 1e9) / 1e9) > 0`); got != "true" {
		t.Error("the page has no clock")
	}
	before := b.clickProduct(t)
	awaitEven(t, before+1)
	all, err := shared.receipts(t.Context(), 0)
	check(t, err)
	for _, r := range all[max(0, len(all)-2):] {
		if off := r.ReceivedAt.Sub(r.Interaction.OccurredAt); off < -2*time.Second || off > 8*time.Second {
			t.Errorf("%s occurred %s before it was received", r.Interaction.Type, off)
		}
	}
	b.v.click(`button[data-act=clock]`)
	b.v.await(`document.querySelector('button[data-act=clock]')?.getAttribute('aria-pressed') === 'false'`)
}

func (b *buttons) leave(t *testing.T) {
	b.v.to(shared.demo.URL + "/")
	b.v.await(ready)
	p, err := readPanel(t.Context())
	check(t, err)
	b.v.click(`button[data-act=leave]`)
	b.v.await(`location.pathname === '/away' && document.readyState === 'complete'`)
	b.v.shoot("away")
	b.v.click(`a.button`)
	b.v.await(`location.pathname === '/' && document.readyState === 'complete'`)
	awaitEven(t, p.Count.Minted+1)
}

func (b *buttons) twoTabs(t *testing.T) {
	b.v.await(ready)
	b.v.click(`button[data-act=two-tabs]`)
	var targets struct {
		All []struct {
			Type string `json:"type"`
			URL  string `json:"url"`
		} `json:"targetInfos"`
	}
	awaitPanel(t, "two tabs", func(panel) bool {
		check(t, b.v.Call(t.Context(), "Target.getTargets", struct{}{}, &targets))
		n := 0
		for _, x := range targets.All {
			if x.Type == "page" && strings.HasPrefix(x.URL, shared.demo.URL) {
				n++
			}
		}
		return n == 2
	})
	awaitEven(t, 1)
}
