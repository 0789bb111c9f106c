//go:build web

package webtest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// part opens a page with one more file of the SDK, whose signals an edge of the test accepts.
func part(t *testing.T, name, query string) (*visitor, *scripted) {
	t.Helper()
	h := newHarness(t)
	s := newScripted(t, func(_ int, r arrival, w http.ResponseWriter) { accept(w, r.ids) })
	v := visit(t, chromium(t), h.shopper(name, s.URL, shared.shop, nil)+query)
	v.eval(fmt.Sprintf(`new Promise((f, no) => {
		const e = document.createElement('script');
		e.src = '/sdk/%s.iife.js'; e.onload = () => f(0); e.onerror = no;
		document.head.append(e);
	})`, name))
	// What the SDK tells, by type and item.
	v.eval(`window.told = []; sf.on('result', (r) => told.push(r.type)); 0`)
	return v, s
}

// told waits until the SDK told as many signals, and compares their types in any order.
func (v *visitor) told(want ...string) {
	v.t.Helper()
	v.await(fmt.Sprintf("sf.flush().then(() => told.length >= %d)", len(want)))
	got := strings.Split(v.eval("told.join()"), ",")
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		v.t.Errorf("told %v, want %v", got, want)
	}
}

// Shelves that the server rendered are measured by their attributes, also one that comes later; one that
// leaves, one with a broken Decision and what is no item tell nothing.
func TestAuto(t *testing.T) {
	t.Parallel()
	v, s := part(t, "auto", "")
	v.eval(`window.shelf = (id, items) => {
		const e = document.createElement('div');
		e.dataset.sfDecision = JSON.stringify({ decision_id: id, placement: 'home', source: 'engine',
			served_at: new Date().toISOString(), items });
		e.innerHTML = items.map((i) => '<p data-sf-item="' + i.item_id + '" data-sf-position="' +
			i.position + '"><b>x</b><i data-sf-add>+</i><i data-sf-dismiss>-</i></p>').join('') +
			'<u>no item</u>';
		document.body.append(e);
		return e;
	};
	const broken = document.createElement('div');
	broken.dataset.sfDecision = '{';
	document.body.append(broken);
	window.first = shelf('dec_first', [{ position: 0, item_id: 'itm_a' },
		{ position: 1, item_id: 'itm_a' }]);
	window.stop = Storefront.auto(sf);
	window.later = shelf('dec_later', [{ position: 0, item_id: 'itm_b' }]);
	0`)
	v.told("impression", "impression")
	v.eval(`first.querySelector('[data-sf-position="1"] b').click(),
		first.querySelector('[data-sf-add]').click(), later.querySelector('[data-sf-dismiss]').click(), first.querySelector('u').click(), 0`)
	v.told("impression", "impression", "click", "add_to_cart", "dismiss")
	v.eval(`stop(), first.querySelector('b').click(),
		shelf('dec_last', [{ position: 0, item_id: 'itm_c' }]), 0`)
	check(t, pause(t.Context(), 2*time.Second))
	v.told("impression", "impression", "click", "add_to_cart", "dismiss")
	if n := len(s.all()); n == 0 {
		t.Error("nothing was sent")
	}
}

// The element asks for its placement and fills its template in: with texts, never with markup, and without an
// address that is a script. Its clicks are told.
func TestElement(t *testing.T) {
	t.Parallel()
	v, _ := part(t, "element", "")
	v.eval(`window.asked = [];
	const card = (title, url) => ({ external_id: '1', title: { en: title }, url: { en: url },
		availability: [], price: { amount: '10.00', currency: 'ARS' },
		promotional_price: { amount: '8.00', currency: 'ARS' },
		image: { url: '/picture.png', alt: { en: 'A cup' } }, refresh_revision: 1 });
	sf.recommend = async (placement, o) => {
		asked.push([placement, o.limit, o.expand, o.product].join());
		if (placement === 'broken') throw Error('no');
		const items = [card('<b>Mate</b>', 'https://shop.example/1'), card('Yerba', 'javascript:alert(1)'),
			undefined].map((item, position) => ({ position, item_id: 'itm_' + position, item }));
		return sf.adopt({ decision_id: 'dec_e', placement, source: 'engine',
			served_at: new Date().toISOString(), items });
	};
	window.events = [];
	for (const name of ['sf-ready', 'sf-error']) addEventListener(name, () => events.push(name));
	Storefront.defineElement(sf);
	const template = '<template><div><a data-sf="link"><img data-sf="image">' +
		'<span data-sf="title"></span></a><span data-sf="price"></span>' +
		'<button data-sf="add"></button><button data-sf="dismiss"></button>' +
		'</div></template>';
	document.body.insertAdjacentHTML('beforeend',
		'<sf-recommendations placement="cart" limit="3" product="7">' + template + '</sf-recommendations>' +
		'<sf-recommendations placement="broken">' + template + '</sf-recommendations>' +
		'<sf-recommendations></sf-recommendations>');
	document.addEventListener('click', (e) => e.preventDefault());
	0`)
	v.await("events.length === 2")
	v.eval(`window.all = (what) => [...document.querySelectorAll(what)]; 0`)
	for expression, want := range map[string]string{
		"asked.join(' ')":                                    "cart,3,item,7 broken,8,item,",
		"events.sort().join()":                               "sf-error,sf-ready",
		"all('sf-recommendations div').length":               "2", // no card, no copy
		"all('[data-sf=title]')[0].textContent":              "<b>Mate</b>",
		"all('[data-sf=image]')[0].alt":                      "A cup",
		"all('a').map((a) => a.getAttribute('href')).join()": "https://shop.example/1,",
	} {
		if got := v.eval(expression); got != want {
			t.Errorf("%s: %q, want %q", expression, got, want)
		}
	}
	price := v.eval("document.querySelector('[data-sf=price]').textContent")
	if !strings.Contains(price, "8.00") {
		t.Errorf("price %q is not the promotional one", price)
	}
	v.told("impression")
	v.eval(`document.querySelector('a').click(), document.querySelector('[data-sf=add]').click(),
		document.querySelector('[data-sf=dismiss]').click(), 0`)
	v.told("impression", "click", "add_to_cart", "dismiss")
	if got := v.eval("document.querySelectorAll('sf-recommendations div').length"); got != "1" {
		t.Errorf("%s copies after one was dismissed", got)
	}
}

// The overlay shows what was told, where the page's address asks for it, and goes when it is stopped.
func TestDebug(t *testing.T) {
	t.Parallel()
	v, _ := part(t, "debug", "&sf_debug=1")
	v.eval("window.stop = Storefront.debug(sf), acts.adopt(" + decisionJSON +
		"), decision.items[0].click(), 0")
	v.await(`/click sig_\S+ accepted/.test(document.querySelector('pre[role=status]')?.textContent)`)
	v.eval("stop(), 0")
	if got := v.eval("document.querySelectorAll('pre').length"); got != "0" {
		t.Errorf("%s overlays after the end", got)
	}
	v.eval("history.replaceState(0, '', '/?s=debug'), Storefront.debug(sf), 0")
	if got := v.eval("document.querySelectorAll('pre').length"); got != "0" {
		t.Error("an overlay without ?sf_debug=1")
	}
}

// With Global Privacy Control a page has neither visitor nor keys, unless the shop says otherwise. An e-mail
// address or a telephone number is refused as a visitor, at the call.
func TestPrivacy(t *testing.T) {
	t.Parallel()
	b, h := chromium(t), newHarness(t)
	s := newScripted(t, func(_ int, r arrival, w http.ResponseWriter) { accept(w, r.ids) })
	v := visit(t, b, h.URL+"/away")
	check(t, v.Call(v.ctx, "Page.addScriptToEvaluateOnNewDocument", map[string]any{
		"source": "Object.defineProperty(navigator, 'globalPrivacyControl', { value: true })"}, nil))
	v.to(h.shopper("gpc", s.URL, shared.shop, nil))
	v.eval("acts.adopt(" + decisionJSON + "), acts.click(0).length")
	v.await("sf.flush().then((x) => x.accepted === 1)")
	if got := v.eval("sf.stats().consent + keys().length"); got != "anonymous0" {
		t.Errorf("with GPC: %s keys", got)
	}
	v.to(h.shopper("gpc", s.URL, shared.shop, map[string]any{"respectGPC": false}))
	if got := v.eval("sf.stats().consent"); got != "full" {
		t.Errorf("with respectGPC: false, consent is %s", got)
	}
	for visitor, want := range map[string]string{
		"ana@shop.example": "TypeError", "vis_ana@shop.example": "TypeError",
		"+54 9 11 5555 1234": "TypeError",
		"vis_5491155551234":  "TypeError", "vis_549-115-555": "TypeError", "vis_a1b2c3d4": "",
	} {
		got := v.eval(fmt.Sprintf(`(() => {
			try { Storefront.storefront({ ...config, visitorId: %q }).close(); } catch (e) { return e.name; }
			return '';
		})()`, visitor))
		if got != want {
			t.Errorf("visitor %q: %q, want %q", visitor, got, want)
		}
	}
	if n := s.preflights(); n != 0 {
		t.Errorf("%d preflights", n)
	}
}
