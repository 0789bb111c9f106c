//go:build web

package webtest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"storefront.internal/deploy/webtest/browser"
)

// A thanks page that is reloaded five times, opened in a second tab and in a second profile, is one purchase.
func TestAPurchaseCountsOnce(t *testing.T) {
	b, h := chromium(t), newHarness(t)
	url := h.shopper("purchase", shared.edge.URL, shared.shop, nil)
	d, err := shared.shop.Recommend(t.Context(), nil)
	check(t, err)
	order := fmt.Sprint("order-", time.Now().UnixNano())
	thanks := fmt.Sprintf(`note(sf.purchase({ order: %q, lines: [{ itemId: %q, variantId: %q, decision: %q }] }))[0]`,
		order, d.Items[0].ItemID, d.Items[0].VariantID, d.ID)
	v := visit(t, b, url)
	id := v.eval(thanks)
	again := func(v *visitor) {
		t.Helper()
		if got := v.eval(thanks); got != id {
			t.Errorf("id %s, want %s", got, id)
		}
		v.await("sf.flush().then(() => signals() === 0)")
	}
	again(v)
	for range 5 {
		v.to(url)
		again(v)
	}
	again(visitIn(t, v.profile, url))
	again(visit(t, b, url))
	got, err := shared.judge(t.Context(), h.of("purchase"), 30*time.Second)
	check(t, err)
	var stored int
	row := shared.pool.QueryRow(t.Context(),
		"SELECT count(*) FROM relay.signals WHERE order_external_id = $1", order)
	check(t, row.Scan(&stored))
	if len(got.Lost)+len(got.Doubled) > 0 || stored != 1 {
		t.Errorf("%d purchases are stored, verdict %+v", stored, got)
	}
}

// A page with the SDK is kept in the back/forward cache, and mints no second impression when it comes back.
func TestThePageIsKeptForGoingBack(t *testing.T) {
	h := newHarness(t)
	v := visit(t, chromium(t), h.shopper("back", shared.edge.URL, shared.shop, nil))
	v.eval("acts.recommend()")
	v.eval("acts.impression().length + acts.click(0).length")
	v.await("signals() === 0")
	v.to(h.URL + "/away")
	check(t, v.Evaluate(v.ctx, "void setTimeout(() => history.back())", nil))
	v.await("window.restored === 1")
	got := v.eval("JSON.stringify(performance.getEntriesByType('navigation')[0].notRestoredReasons ?? null)")
	if got != "null" {
		t.Errorf("notRestoredReasons %s", got)
	}
	v.eval("acts.impression().length + acts.click(1).length")
	v.await("sf.flush().then(() => signals() === 0)")
	if n := len(h.of("back")); n != 3 {
		t.Errorf("%d signals were minted, want one impression and two clicks", n)
	}
	verdict, err := shared.judge(t.Context(), h.of("back"), 30*time.Second)
	check(t, err)
	if len(verdict.Lost)+len(verdict.Doubled) > 0 {
		t.Errorf("verdict %+v", verdict)
	}
}

// Signals of a page whose clock is three hours off get the right time after the first Decision.
func TestAWrongClockIsCorrected(t *testing.T) {
	b, h := chromium(t), newHarness(t)
	for name, hours := range map[string]int{"ahead": 3, "behind": -3} {
		v := visit(t, b, h.URL+"/away")
		check(t, v.Call(v.ctx, "Page.addScriptToEvaluateOnNewDocument", map[string]any{"source": fmt.Sprintf(`
			const off = %d * 3600e3, { now } = Date, origin = performance.timeOrigin;
			Date.now = () => now() + off;
			Object.defineProperty(performance, 'timeOrigin', { value: origin + off });`, hours)}, nil))
		v.to(h.shopper(name, shared.edge.URL, shared.shop, nil))
		v.eval("acts.recommend()")
		before := time.Now()
		v.eval("acts.add(0).length")
		after := time.Now()
		v.await("sf.flush().then(() => signals() === 0)")
		ids := h.of(name)
		_, err := shared.judge(t.Context(), ids, 30*time.Second)
		check(t, err)
		all, err := shared.receipts(t.Context(), 0)
		check(t, err)
		i := slices.IndexFunc(all, func(r receipt) bool { return r.Interaction.SignalID == ids[0] })
		if i < 0 {
			t.Fatalf("%s is not at the engine", ids[0])
		}
		r := all[i].Interaction
		if r.OccurredAt.Before(before.Add(-2*time.Second)) || r.OccurredAt.After(after.Add(2*time.Second)) {
			t.Errorf("%s: occurred at %s, minted between %s and %s", name, r.OccurredAt, before, after)
		}
		if r.CartLine == nil || r.CartLine.Quantity != 1 {
			t.Errorf("%s: cart line %+v", name, r.CartLine)
		}
	}
}

// Where the edge does not take the key in the query, the SDK goes on by the header form.
func TestTheHeaderFormServesInstead(t *testing.T) {
	edge, err := shared.Edge("edge-header", "EDGE_BEACON=false")
	check(t, err)
	check(t, shared.Start(t.Context(), readyWithin, edge))
	h := newHarness(t)
	v := visit(t, chromium(t), h.shopper("header", edge.URL, shared.shop, nil))
	v.eval("acts.recommend()")
	v.eval("acts.add(0).length + acts.impression().length")
	v.await("sf.flush().then(() => signals() === 0)")
	got, err := shared.judge(t.Context(), h.of("header"), 30*time.Second)
	check(t, err)
	if len(got.Lost)+len(got.Doubled) > 0 {
		t.Errorf("verdict %+v", got)
	}
	check(t, edge.Stop(context.WithoutCancel(t.Context())))
}

// Consent decides what is kept in the browser and what is sent.
func TestConsent(t *testing.T) {
	t.Parallel()
	b, h := chromium(t), newHarness(t)
	s := newScripted(t, func(_ int, r arrival, w http.ResponseWriter) { accept(w, r.ids) })
	page := func(name string, consent string) *visitor {
		t.Helper()
		return visit(t, b, h.shopper(name, s.URL, shared.shop, map[string]any{"consent": consent}))
	}
	act := "acts.adopt(" + decisionJSON + "), acts.click(0).length + acts.impression().length"
	keys := func(v *visitor, want string) {
		t.Helper()
		if got := v.eval("keys().length"); got != want {
			t.Errorf("%s keys are kept, want %s: %s", got, want, v.eval("keys().join()"))
		}
	}
	off := page("off", "off")
	off.eval("acts.adopt(" + decisionJSON + "), decision.items[0].click()")
	off.eval("sf.flush().then(() => 0)")
	keys(off, "0")
	if n := len(s.all()); n != 0 {
		t.Errorf("%d requests without consent", n)
	}
	anonymous := page("anonymous", "anonymous")
	anonymous.eval(act)
	anonymous.await("sf.flush().then((x) => x.accepted === 2)")
	keys(anonymous, "0")
	full := page("full", "full")
	full.eval(act)
	if full.eval("keys().length > 0") != "true" {
		t.Error("nothing is kept with consent")
	}
	full.eval("sf.consent('off')")
	keys(full, "0")
}

// vector is one published derivation of an id.
type vector struct {
	What       string   `json:"what"`
	Connection string   `json:"connection_id"`
	Parts      []string `json:"parts"`
	ID         string   `json:"id"`
}

// The published vectors hold in each browser, by what the calls return.
func TestIDsInBrowsers(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(shared.project.Root, "edge", "sdk", "testdata", "ids.json"))
	check(t, err)
	var vectors []vector
	check(t, json.Unmarshal(text, &vectors))
	for _, name := range strings.Fields(os.Getenv("WEB_BROWSERS")) {
		t.Run(name, func(t *testing.T) {
			b, err := browser.Start(t.Context(), name, folder(t))
			check(t, err)
			defer b.Kill()
			f, err := b.Profile(t.Context())
			check(t, err)
			url := newHarness(t).shopper("ids", "http://127.0.0.1:9", shared.shop, nil)
			p, err := f.Open(t.Context(), url)
			check(t, err)
			checked := 0
			for _, x := range vectors {
				var script string
				switch x.Parts[0] {
				case "purchase":
					script = fmt.Sprintf(`purchase({ order: %q, lines: [{ decision: %q, itemId: %q, variantId: %q || undefined }] })[0]`,
						x.Parts[1], x.Parts[2], x.Parts[3], x.Parts[4])
				case "impression":
					script = fmt.Sprintf(`adopt({ decision_id: %q, items: [] }).impression()`, x.Parts[1])
				default:
					continue
				}
				checked++
				var got string
				check(t, p.Evaluate(t.Context(), fmt.Sprintf(`Storefront.storefront({ ...config, connectionId: %q,
					storage: 'memory' }).%s`, x.Connection, script), &got))
				if got != x.ID {
					t.Errorf("%s: %s, want %s", x.What, got, x.ID)
				}
			}
			if checked < 3 {
				t.Errorf("%d vectors were checked", checked)
			}
		})
	}
}

// A browser that is killed loses at most what was minted in the last five seconds: Chromium writes storage to
// the disk with that delay.
func TestAKilledBrowser(t *testing.T) {
	t.Parallel()
	h, dir := newHarness(t), folder(t)
	dead := "http://127.0.0.1:9" // nothing is sent before the kill
	url := h.shopper("kill", dead, shared.shop, nil)
	minted := map[string]time.Time{}
	var killed time.Time
	lost, late := 0, 0
	for range number("WEB_KILLS", 2) {
		b, err := browser.Start(t.Context(), browser.Chromium, dir)
		check(t, err)
		f, err := browser.Persistent(b)
		check(t, err)
		v := visitIn(t, f, url)
		v.eval("acts.adopt(" + decisionJSON + ")")
		round := map[string]time.Time{}
		for range 8 {
			var ids []string
			check(t, v.Evaluate(v.ctx, "acts.click(0)", &ids))
			round[ids[0]] = time.Now()
			check(t, pause(t.Context(), time.Second))
		}
		killed = time.Now()
		b.Kill()
		b, err = browser.Start(t.Context(), browser.Chromium, dir)
		check(t, err)
		if f, err = browser.Persistent(b); err != nil {
			t.Fatal(err)
		}
		v = visitIn(t, f, url)
		var kept string
		check(t, v.Evaluate(v.ctx, "Object.keys(localStorage).join()", &kept))
		for id, at := range round {
			minted[id] = at
			if strings.Contains(kept, id) {
				continue
			}
			lost++
			if killed.Sub(at) > 6*time.Second {
				late++
				t.Errorf("%s was minted %s before the kill and is lost", id, killed.Sub(at))
			}
		}
		check(t, b.Close())
	}
	t.Logf("kill -9 of the browser: %d of %d signals were lost, %d of them older than 6 s", lost,
		len(minted), late)
}
