//go:build web

package webtest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"storefront.internal/deploy/stack/poll"
	"storefront.internal/deploy/webtest/browser"
)

// visitor is a person at a page of Chromium.
type visitor struct {
	*browser.ChromiumPage
	t       testing.TB
	ctx     context.Context //nolint:containedctx // of the test
	profile browser.Profile
}

// chromium is one Chromium for all tests. Each visits it in profiles of its own, which share nothing.
func chromium(t *testing.T) browser.Browser {
	t.Helper()
	b, err := shared.chromium()
	check(t, err)
	return b
}

// folder is for a browser's data. A browser that was killed may still write there, so what cannot be removed
// stays for the end of all tests.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(shared.dir, "browser-")
	check(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// visit opens a page in a new profile.
func visit(t *testing.T, b browser.Browser, url string) *visitor {
	t.Helper()
	f, err := b.Profile(t.Context())
	check(t, err)
	t.Cleanup(func() { check(t, f.Close(context.WithoutCancel(t.Context()))) })
	return visitIn(t, f, url)
}

func visitIn(t testing.TB, f browser.Profile, url string) *visitor {
	t.Helper()
	p, err := f.Open(t.Context(), url)
	check(t, err)
	v := &visitor{p.(*browser.ChromiumPage), t, t.Context(), f}
	v.complain()
	return v
}

// complain reports the page's errors when the test fails.
func (v *visitor) complain() {
	v.t.Helper()
	var mu sync.Mutex
	var said []string
	v.OnEvent(func(method string, params json.RawMessage) {
		if method == "Runtime.exceptionThrown" || method == "Log.entryAdded" {
			mu.Lock()
			defer mu.Unlock()
			said = append(said, string(params[:min(len(params), 600)]))
		}
	})
	check(v.t, v.Call(v.ctx, "Runtime.enable", struct{}{}, nil))
	check(v.t, v.Call(v.ctx, "Log.enable", struct{}{}, nil))
	v.t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		if v.t.Failed() {
			v.t.Logf("the page said %d things:\n%s", len(said), strings.Join(said, "\n"))
		}
	})
}

// await waits until an expression is true on the page. A page that is just being replaced is asked again.
func (v *visitor) await(expression string) {
	v.t.Helper()
	check(v.t, poll.Within(v.ctx, 30*time.Second, expression, func() error {
		var ok bool
		if err := v.Evaluate(v.ctx, "(async () => Boolean(await ("+expression+")))()", &ok); err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("it is not so")
		}
		return nil
	}))
}

// eval evaluates an expression whose value is a string, a number or nothing.
func (v *visitor) eval(expression string) string {
	v.t.Helper()
	var out any
	if err := v.Evaluate(v.ctx, expression, &out); err != nil {
		v.t.Fatalf("%s: %v", expression, err)
	}
	return fmt.Sprint(out)
}

func (v *visitor) to(url string) {
	v.t.Helper()
	check(v.t, v.Navigate(v.ctx, url))
}

// click presses the mouse at the middle of an element.
func (v *visitor) click(selector string) {
	v.t.Helper()
	var at struct{ X, Y float64 }
	check(v.t, v.Evaluate(v.ctx, fmt.Sprintf(`(() => {
		const e = document.querySelector(%q);
		e.scrollIntoView({ block: 'center', behavior: 'instant' });
		const r = e.getBoundingClientRect();
		return { X: r.x + r.width / 2, Y: r.y + r.height / 2 };
	})()`, selector), &at))
	for _, kind := range []string{"mousePressed", "mouseReleased"} {
		check(v.t, v.Call(v.ctx, "Input.dispatchMouseEvent", map[string]any{"type": kind, "x": at.X,
			"y": at.Y, "button": "left", "clickCount": 1}, nil))
	}
}

// look sets the size of the viewport and the colour scheme.
func (v *visitor) look(width, height int, scheme string) {
	v.t.Helper()
	check(v.t, v.Call(v.ctx, "Emulation.setDeviceMetricsOverride", map[string]any{"width": width,
		"height": height, "deviceScaleFactor": 1, "mobile": false}, nil))
	check(v.t, v.Call(v.ctx, "Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{
		{"name": "prefers-color-scheme", "value": scheme}}}, nil))
}

// shoot keeps a screenshot in the folder WEB_SCREENSHOTS, if there is one.
func (v *visitor) shoot(name string) {
	v.t.Helper()
	dir := os.Getenv("WEB_SCREENSHOTS")
	if dir == "" {
		return
	}
	png, err := v.Screenshot(v.ctx)
	check(v.t, err)
	check(v.t, os.MkdirAll(dir, 0o755))
	check(v.t, os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644))
}

// axe runs axe-core and reports what is serious or critical.
func (v *visitor) axe(name string) {
	v.t.Helper()
	source, err := os.ReadFile(filepath.Join(shared.project.Root, "deploy", "webtest", "node_modules",
		"axe-core", "axe.min.js"))
	if err != nil {
		v.t.Fatalf("axe-core is missing, run `npm ci` in deploy/webtest: %v", err)
	}
	check(v.t, v.Evaluate(v.ctx, string(source)+";0", nil))
	var found []json.RawMessage
	check(v.t, v.Evaluate(v.ctx, `axe.run().then((r) => r.violations.filter(
		(x) => x.impact === 'serious' || x.impact === 'critical').map(
		(x) => ({ id: x.id, help: x.help, at: x.nodes.map((n) => n.html.slice(0, 120)) })))`, &found))
	for _, x := range found {
		v.t.Errorf("axe, %s: %s", name, x)
	}
}
