package fake

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"storefront.internal/deploy/fakeprovider/hooks"
)

const shopifyAPI = "/shopify/demo.myshopify.com/admin/api/2026-01/graphql.json"

// ask sends an operation and reads its data into the answer.
func (h *harness) ask(status int, query string, vars any) map[string]any {
	h.t.Helper()
	return h.askAt(shopifyAPI, status, query, vars)
}

func (h *harness) askAt(path string, status int, query string, vars any) map[string]any {
	h.t.Helper()
	body, err := json.Marshal(map[string]any{"query": query, "variables": vars})
	if err != nil {
		h.t.Fatal(err)
	}
	var out map[string]any
	h.must(status, "POST", path, string(body), "X-Shopify-Access-Token", "demo-1").into(h.t, &out)
	return out
}

// at follows keys and indices into an answer.
func at(v any, path ...any) any {
	for _, step := range path {
		switch s := step.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[s]
		case int:
			l, _ := v.([]any)
			if s >= len(l) {
				return nil
			}
			v = l[s]
		}
	}
	return v
}

func TestShopifyAdmits(t *testing.T) {
	t.Parallel()
	b := newHarness(t)
	const query = `{"query":"{shop{name}}"}`
	b.must(401, "POST", shopifyAPI, query)
	b.must(401, "POST", shopifyAPI, query, "X-Shopify-Access-Token", "shpat_1")
	b.must(400, "POST", shopifyAPI, query, "X-Shopify-Access-Token", "demo-1", "Content-Type", "text/plain")
	b.must(400, "POST", shopifyAPI, `{`, "X-Shopify-Access-Token", "demo-1")
	b.must(404, "POST", "/shopify/demo/admin/api/2026-02/graphql.json", query, "X-Shopify-Access-Token",
		"demo-1")
	b.must(404, "GET", "/shopify/demo/admin/api/2026-01/products.json", "", "X-Shopify-Access-Token",
		"demo-1")
	a := b.must(200, "POST", "/shopify/demo/admin/api/2026-01/graphql.json", query, "X-Shopify-Access-Token",
		"demo-1")
	if !strings.Contains(a.body, `"name":"Shop demo"`) || a.header.Get("X-Shopify-API-Version") != "2026-01" {
		t.Errorf("answered %s %v", a.body, a.header)
	}
	b.must(204, "POST", "/shopify/debug/stores", `{"state":"suspended"}`)
	b.must(402, "POST", shopifyAPI, query, "X-Shopify-Access-Token", "demo-1")
	b.must(204, "POST", "/debug/behaviour", `{"api":{"status":429}}`)
	if a := b.must(429, "POST", shopifyAPI, query); !strings.Contains(a.body, "THROTTLED") {
		t.Errorf("throttled %s", a.body)
	}
}

const productQuery = `query Q($id: ID!) { it: product(id: $id) { id title status tags updatedAt
  media(first: 5) { nodes { id alt ... on MediaImage { image { url } } } }
  variants(first: 10) { nodes { id price compareAtPrice inventoryItem { tracked } selectedOptions { name ` +
	`value } } }
  collections(first: 5) { nodes { id title } } } }`

func TestShopifyProduct(t *testing.T) {
	t.Parallel()
	b := newHarness(t)
	get := func(id string) map[string]any { return b.ask(200, productQuery, map[string]any{"id": id}) }
	p := at(get("gid://shopify/Product/1004"), "data", "it")
	if at(p, "id") != "gid://shopify/Product/1004" || at(p, "status") != "ACTIVE" {
		t.Errorf("product %v", p)
	}
	if url, _ := at(p, "media", "nodes", 0, "image", "url").(string); !strings.HasPrefix(url, "https://") {
		t.Errorf("media %v", at(p, "media"))
	}
	v := at(p, "variants", "nodes", 0)
	if at(v, "price") == nil || at(v, "compareAtPrice") == nil ||
		at(v, "selectedOptions", 0, "name") != "Color" {
		t.Errorf("variant %v", v)
	}
	if at(p, "collections", "nodes", 0, "title") == nil {
		t.Errorf("collections %v", at(p, "collections"))
	}
	if gone := get("gid://shopify/Product/77"); at(gone, "data", "it") != nil || at(gone, "errors") != nil {
		t.Errorf("a product that does not exist: %v", gone)
	}
	for name, vars := range map[string]any{
		"no variable": nil, "of another type": map[string]any{"id": "gid://shopify/Order/500001"},
		"no global id": map[string]any{"id": "7"},
	} {
		if a := b.ask(200, productQuery, vars); at(a, "errors", 0, "message") == nil {
			t.Errorf("%s: %v", name, a)
		}
	}
	for query, want := range map[string]string{
		`{product(id:"gid://shopify/Product/1001"){cake}}`: "cake",
		`query Q{product(id:"gid://shopify/Product/1001"){...P}} fragment P on Product { id }`: "named " +
			"fragments",
	} {
		if a := b.ask(200, query, nil); !strings.Contains(fmt.Sprint(at(a, "errors", 0, "message")), want) {
			t.Errorf("%s: %v", query, a)
		}
	}
}

func TestShopifyPages(t *testing.T) {
	t.Parallel()
	b := newHarness(t)
	const query = `query($n:Int,$after:String,$q:String){products(first:$n,after:$after,query:$q,` +
		`sortKey:UPDATED_AT){nodes{id} pageInfo{hasNextPage endCursor}}}`
	seen, after := map[any]bool{}, any(nil)
	for range 3 {
		page := at(b.ask(200, query, map[string]any{"n": 25, "after": after}), "data", "products")
		nodes, _ := at(page, "nodes").([]any)
		for _, n := range nodes {
			seen[at(n, "id")] = true
		}
		after = at(page, "pageInfo", "endCursor")
		if more := at(page, "pageInfo", "hasNextPage") == true; more != (len(seen) < 60) {
			t.Errorf("more: %v after %d", more, len(seen))
		}
	}
	if len(seen) != 60 {
		t.Errorf("%d products", len(seen))
	}
	b.must(200, "PUT", "/shopify/debug/products/1002", `{"title":"Neu"}`)
	for q, want := range map[string]int{"updated_at:>='2026-07-01T12:00:00Z'": 1,
		"updated_at:>2026-07-01T12:00:00Z": 0, "id:>=1059 AND status:active": 2, "updated_at:<2026-07-01": 59,
		"vendor:x": 60} {
		nodes, _ := at(b.ask(200, query, map[string]any{"n": 250, "q": q}), "data", "products",
			"nodes").([]any)
		if len(nodes) != want {
			t.Errorf("%s: %d, want %d", q, len(nodes), want)
		}
	}
	for _, vars := range []map[string]any{{}, {"n": 251}, {"n": -1}, {"n": 1, "after": "?"},
		{"n": 1, "q": "updated_at:>2026-99"}} {
		if a := b.ask(200, query, vars); at(a, "errors", 0, "message") == nil {
			t.Errorf("%v: %v", vars, a)
		}
	}
	orders := at(b.ask(200,
		`{orders(first:250){nodes{id customer{email} lineItems(first:5){nodes{quantity product{id} `+
			`variant{id}}}}}}`, nil),
		"data", "orders", "nodes")
	if at(orders, 5, "id") != "gid://shopify/Order/500006" || at(orders, 4, "customer", "email") == nil {
		t.Errorf("orders %v", orders)
	}
	if at(orders, 4, "lineItems", "nodes", 0, "product", "id") == nil {
		t.Errorf("lines %v", orders)
	}
}

func TestShopifyLimitsByCost(t *testing.T) {
	t.Parallel()
	b := newHarness(t)
	const query = `{products(first:250){nodes{id variants(first:100){nodes{id}}}}}`
	a := b.ask(200, query, nil)
	cost := at(a, "extensions", "cost")
	requested, _ := at(cost, "requestedQueryCost").(float64)
	if requested <= 0 || at(cost, "throttleStatus", "maximumAvailable") != 2000.0 ||
		at(cost, "throttleStatus", "restoreRate") != 100.0 {
		t.Fatalf("cost %v", cost)
	}
	statuses := map[int]int{}
	for range 2000 {
		body, _ := json.Marshal(map[string]any{"query": query})
		r := b.call("POST", shopifyAPI, string(body), "X-Shopify-Access-Token", "demo-1")
		if strings.Contains(r.body, `"Throttled"`) {
			if statuses[r.status]++; len(statuses) == 2 {
				break
			}
		}
	}
	if statuses[200] != 1 || statuses[429] != 1 {
		t.Errorf("throttled with %v", statuses)
	}
	b.pass(20 * time.Second)
	if a := b.ask(200, query, nil); at(a, "errors") != nil {
		t.Errorf("after a while: %v", at(a, "errors"))
	}
	if a := b.ask(200, `{products(first:250){nodes{collections(first:250){nodes{id}} `+
		`variants(first:250){nodes{inventoryItem{tracked} selectedOptions{name}}} `+
		`media(first:250){nodes{id}}}}`+
		`}`, nil); at(a, "errors", 0, "extensions", "code") != "MAX_COST_EXCEEDED" {
		t.Errorf("too expensive: %v", at(a, "errors"))
	}
}

func TestShopifyBulk(t *testing.T) {
	t.Parallel()
	const inner = `{products{edges{node{id title variants{edges{node{id sku}}}}}}}`
	const run = `mutation($q:String!){bulkOperationRunQuery(query:$q,groupObjects:true){bulkOperation{id ` +
		`status} userErrors{code message}}}`
	b := newHarness(t)
	made := at(b.ask(200, run, map[string]any{"q": inner}), "data", "bulkOperationRunQuery")
	id := at(made, "bulkOperation", "id")
	if at(made, "bulkOperation", "status") != "CREATED" {
		t.Fatalf("made %v", made)
	}
	for i := range 5 {
		again := at(b.ask(200, run, map[string]any{"q": inner}), "data", "bulkOperationRunQuery",
			"userErrors", 0, "code")
		if refused := again == "OPERATION_IN_PROGRESS"; refused != (i == 4) {
			t.Errorf("operation %d at once: %v", i+2, again)
		}
	}
	b.must(200, "PUT", "/shopify/debug/products/1001", `{"title":"newer than the export"}`)
	read := func() any {
		const query = `query($id:ID!){bulkOperation(id:$id){status url objectCount rootObjectCount}}`
		return at(b.ask(200, query, map[string]any{"id": id}), "data", "bulkOperation")
	}
	if s := at(read(), "status"); s != "RUNNING" {
		t.Errorf("then %v", s)
	}
	b.must(404, "GET", "/shopify/demo/bulk/1.jsonl", "")
	done := read()
	url, _ := at(done, "url").(string)
	if at(done, "status") != "COMPLETED" || at(done, "rootObjectCount") != "60" {
		t.Fatalf("done %v", done)
	}
	lines := strings.Split(b.must(200, "GET", url, "").body, "\n")
	if fmt.Sprint(len(lines)) != at(done, "objectCount") {
		t.Errorf("%d lines of %v", len(lines), at(done, "objectCount"))
	}
	checkLines(t, lines)
	if a := b.must(206, "GET", url, "", "Range", "bytes=0-9"); len(a.body) != 10 ||
		!strings.HasPrefix(lines[0], a.body) {
		t.Errorf("a part: %s", a.body)
	}
	b.must(416, "GET", url, "", "Range", "bytes=99999999-")
	b.must(404, "GET", "/shopify/demo/bulk/99.jsonl", "")
}

// checkLines checks that each child comes right behind its parent or its siblings.
func checkLines(t *testing.T, lines []string) {
	t.Helper()
	parents, last := 0, any(nil)
	for _, line := range lines {
		var o map[string]any
		if err := json.Unmarshal([]byte(line), &o); err != nil || o["title"] == "newer than the export" {
			t.Fatalf("%s: %v", line, err)
		}
		parent, isChild := o["__parentId"]
		if !isChild {
			last = o["id"]
			parents++
		} else if parent != last {
			t.Errorf("not behind its parent: %s", line)
		}
	}
	if parents != 60 {
		t.Errorf("%d parents", parents)
	}
}

func TestShopifyBulkRefuses(t *testing.T) {
	t.Parallel()
	b := newHarness(t)
	f := func(query, group string) {
		a := b.ask(200, `mutation($q:String!){bulkOperationRunQuery(query:$q,`+
			`groupObjects:`+group+`){bulkOperation{id} userErrors{message}}}`,
			map[string]any{"q": query})
		run := at(a, "data", "bulkOperationRunQuery")
		if at(run, "userErrors", 0, "message") == nil || at(run, "bulkOperation") != nil {
			t.Errorf("%s: %v", query, a)
		}
	}
	f(`{`, "true")
	f(`{shop{name}}`, "true")
	f(`{cakes{nodes{id}}}`, "true")
	f(`{products{nodes{id}} orders{nodes{id}}}`, "true")
	f(`{products{nodes{id}}}`, "false")
}

const subscribe = `mutation($t:WebhookSubscriptionTopic!,$u:String){webhookSubscriptionCreate(topic:$t,` +
	`webhookSubscription:{uri:$u,format:JSON}){webhookSubscription{id topic uri} userErrors{field message}}}`

func TestShopifySubscriptions(t *testing.T) {
	t.Parallel()
	b := newHarness(t, func(c *Config) { c.StrictURLs = true })
	create := func(topic, uri string) any {
		a := b.ask(200, subscribe, map[string]any{"t": topic, "u": uri})
		if at(a, "errors") != nil {
			return at(a, "errors")
		}
		return at(a, "data", "webhookSubscriptionCreate")
	}
	made := create("PRODUCTS_UPDATE", "https://hooks.example/a")
	id := at(made, "webhookSubscription", "id")
	if at(made, "webhookSubscription", "uri") != "https://hooks.example/a" || id == nil {
		t.Fatalf("made %v", made)
	}
	if a := create("PRODUCTS_UPDATE", "https://hooks.example/a"); at(a, "userErrors", 0,
		"message") != "Address for this topic has already been taken" {
		t.Errorf("twice: %v", a)
	}
	if a := create("PRODUCTS_UPDATE", "http://localhost/a"); at(a, "userErrors", 0, "field", 1) != "uri" {
		t.Errorf("here: %v", a)
	}
	if a := create("CAKES_UPDATE", "https://hooks.example/a"); at(a, 0, "message") == nil {
		t.Errorf("no topic: %v", a)
	}
	create("ORDERS_PAID", "https://hooks.example/a")
	list := at(b.ask(200, `{webhookSubscriptions(first:10){nodes{id topic}}}`, nil), "data",
		"webhookSubscriptions", "nodes")
	if at(list, 0, "id") != id || at(list, 1, "topic") != "ORDERS_PAID" || at(list, 2) != nil {
		t.Errorf("list %v", list)
	}
	vars := map[string]any{"id": id}
	remove := func() any {
		return at(b.ask(200,
			`mutation($id:ID!){webhookSubscriptionDelete(id:$id){deletedWebhookSubscriptionId `+
				`userErrors{message}}}`, vars), "data", "webhookSubscriptionDelete")
	}
	if a := remove(); at(a, "deletedWebhookSubscriptionId") != id {
		t.Errorf("deleted %v", a)
	}
	if a := remove(); at(a, "userErrors", 0, "message") == nil {
		t.Errorf("deleted twice %v", a)
	}
}

func TestShopifyDelivers(t *testing.T) {
	t.Parallel()
	b := newHarness(t)
	in := newInbox(t, 200, 200, 200, 200, 500)
	for _, topic := range []string{"PRODUCTS_UPDATE", "PRODUCTS_DELETE", "INVENTORY_LEVELS_UPDATE"} {
		b.ask(200, subscribe, map[string]any{"t": topic, "u": in.url + "/shopify/whe_1"})
	}
	send := func(status int, body string) { b.must(status, "POST", "/shopify/debug/webhooks", body) }
	send(202, `{"topic":"products/update","external_id":"1002","repeat":2}`)
	send(202, `{"topic":"PRODUCTS_DELETE","external_id":"1002","store":"demo.myshopify.com"}`)
	send(202, `{"topic":"customers/redact","external_id":"500001"}`)
	send(409, `{"topic":"orders/paid","external_id":"500001"}`)
	send(422, `{"topic":"cakes/update"}`)
	got := in.all()
	if len(got) != 4 {
		t.Fatalf("%d deliveries", len(got))
	}
	d := got[0]
	if d.header.Get("X-Shopify-Topic") != "products/update" ||
		d.header.Get("X-Shopify-Hmac-Sha256") != hooks.Base64("test-secret", []byte(d.body)) ||
		d.header.Get("X-Shopify-Shop-Domain") != "demo.myshopify.com" ||
		d.header.Get("X-Shopify-Triggered-At") == "" {
		t.Errorf("headers %v", d.header)
	}
	if !strings.Contains(d.body, `"admin_graphql_api_id":"gid://shopify/Product/1002"`) ||
		strings.Contains(d.body, "_collections") {
		t.Errorf("body %s", d.body)
	}
	if id := d.header.Get("X-Shopify-Event-Id"); id == "" || got[1].header.Get("X-Shopify-Event-Id") != id ||
		got[1].header.Get("X-Shopify-Webhook-Id") == d.header.Get("X-Shopify-Webhook-Id") {
		t.Errorf("ids %v %v", d.header, got[1].header)
	}
	if got[2].body != `{"id":1002}` || !strings.Contains(got[3].body, `"orders_to_redact":[500001]`) {
		t.Errorf("delivered %+v", got[2:])
	}
	send(202, `{"topic":"products/update","external_id":"1002"}`) // is refused, and no attempt is left
	if a := b.must(200, "GET", "/shopify/debug/subscriptions", ""); strings.Contains(a.body,
		"PRODUCTS_UPDATE") {
		t.Errorf("still subscribed: %s", a.body)
	}
}
