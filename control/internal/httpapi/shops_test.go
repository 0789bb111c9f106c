package httpapi

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"storefront.internal/control/internal/bootstrap"
	"storefront.internal/control/internal/webhook"
	"storefront.internal/shared/catalog"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
)

// fakeLoads has its own OpenRun.
type fakeLoads struct{ *fake }

func (f fakeLoads) OpenRun(_ context.Context, c ident.ConnectionID,
	resources []string) (bootstrap.Run, error) {
	for _, r := range resources {
		if _, ok := catalog.ParseEntity(r); !ok {
			return bootstrap.Run{}, fault.New(fault.UnknownResource, "")
		}
	}
	return bootstrap.Run{ID: "bsr_1", CommandID: "cmd_1"}, f.of(c)
}

func (f fakeLoads) Run(_ context.Context, c ident.ConnectionID, id ident.RunID) (bootstrap.Run, error) {
	return bootstrap.Run{ID: id, State: bootstrap.Failed, Reason: "throttled",
		Resources: map[catalog.Entity]*bootstrap.Progress{
			catalog.Product: {Read: 3, Changed: 2, Deleted: 1, Cursor: canaryText},
		}}, f.of(c)
}

func (f *fake) Receive(_ context.Context, r *webhook.Request) (bool, error) {
	f.webhook, f.received = r, string(r.Body)
	if r.Provider != r.Caller || r.EndpointID != "whe_1" {
		return false, fault.New(fault.Unauthorized, "")
	}
	return f.received == "webhook_id=1", f.fail
}

func shopCases(large string) []documented {
	const (
		hooks = "/internal/v1/webhooks/"
		load  = "/internal/v1/connections/con_1/bootstrap"
		none  = "/internal/v1/connections/con_none/bootstrap"
		one   = `{"connection_id":"con_1"}`
	)
	larger := strings.Repeat("x", webhook.MaxBody+1)
	running := fails(&fault.Error{Code: fault.BootstrapRunning,
		Extra: map[string]any{"bootstrap_run_id": "bsr_2"}})
	post, get := http.MethodPost, http.MethodGet
	return []documented{
		{"deliver_webhook", post, hooks + "shopify/whe_1", connectorToken, "{}", 202, nil},
		{"deliver_webhook", post, hooks + "shopify/whe_1", connectorToken, "webhook_id=1", 200, nil},
		{"deliver_webhook", post, hooks + "shopify/whe_1", connectorToken, "gzip", 400, nil},
		{"deliver_webhook", post, hooks + "tiendanube/whe_1", connectorToken, "{}", 401, nil},
		{"deliver_webhook", post, hooks + "shopify/no%2fendpoint", connectorToken, "{}", 401, nil},
		{"deliver_webhook", post, hooks + "shopify/whe_1", backendToken, "{}", 401, nil},
		{"deliver_webhook", post, hooks + "shopify/whe_1", connectorToken, larger, 413, nil},
		{"deliver_webhook", post, hooks + "shopify/whe_1", connectorToken, "{}", 429,
			fails(&fault.Error{Code: fault.RateLimited, RetryAfter: time.Minute})},
		{"open_bootstrap", post, load, connectorToken, one, 202, nil},
		{"open_bootstrap", post, load, connectorToken,
			`{"connection_id":"con_1","resources":["order","order"]}`, 202, nil},
		{"open_bootstrap", post, load, connectorToken, `{"connection_id":"con_2"}`, 400, nil},
		{"open_bootstrap", post, load, connectorToken, `{}`, 400, nil},
		{"open_bootstrap", post, load, connectorToken, `{"connection_id":"con_1","resources":"product"}`, 400,
			nil},
		{"open_bootstrap", post, load, backendToken, one, 401, nil},
		{"open_bootstrap", post, none, connectorToken, `{"connection_id":"con_none"}`, 404, nil},
		{"open_bootstrap", post, load, connectorToken, one, 409, running},
		{"open_bootstrap", post, load, connectorToken, large, 413, nil},
		{"open_bootstrap", post, load, connectorToken, `{"connection_id":"con_1","resources":["customer"]}`,
			422, nil},
		{"view_bootstrap", get, load + "/bsr_1", connectorToken, "", 200, nil},
		{"view_bootstrap", get, load + "/bsr_1", connectorToken, "gzip", 400, nil},
		{"view_bootstrap", get, load + "/bsr_1", engineToken, "", 401, nil},
		{"view_bootstrap", get, none + "/bsr_1", connectorToken, "", 404, nil},
	}
}

func TestAWebhookReachesTheUseCaseUntouched(t *testing.T) {
	t.Parallel()
	b := newBundle(t, allTokens())
	body := "\x00{\"a\": 1}\r\n\xff"
	w := b.call(http.MethodPost, "/internal/v1/webhooks/shopify/whe_1", connectorToken,
		strings.NewReader(body), func(r *http.Request) {
			r.ContentLength = -1
			r.Header.Set("X-Provider-Signature", "AbC=")
			r.Header.Set("X-Provider-Topic", "products/update")
			r.Header.Set("X-Provider-Delivery-Id", "d")
			r.Header.Set("X-Provider-Triggered-At", "t")
		})
	got := b.fake.webhook
	if w.Code != 202 || w.Body.Len() != 0 || b.fake.received != body || got.Caller != "shopify" ||
		got.Signature != "AbC=" ||
		got.Topic != "products/update" || got.ProviderEventID != "d" || got.TriggeredAt != "t" {
		t.Errorf("%d, %+v, %q", w.Code, got, b.fake.received)
	}
}

func TestTheFormOfARawBody(t *testing.T) {
	t.Parallel()
	for raw, form := range map[string]string{`{"id": 1 }`: "application/json", "": "",
		"{\"id\":1}\n{\"id\":2}": "application/jsonl"} {
		b := newBundle(t, allTokens())
		b.fake.raw = raw
		w := b.call(http.MethodGet, "/internal/v1/observations/obs_1/raw", engineToken, nil)
		if w.Code != 200 || w.Body.String() != raw || w.Header().Get("Content-Type") != form ||
			w.Header().Get("Content-Digest") == "" {
			t.Errorf("%q: %d %v %q", raw, w.Code, w.Header(), w.Body)
		}
	}
}

func TestARunningLoadIsNamed(t *testing.T) {
	t.Parallel()
	b := newBundle(t, allTokens())
	b.fake.fail = &fault.Error{Code: fault.BootstrapRunning,
		Extra: map[string]any{"bootstrap_run_id": "bsr_2"}}
	w := b.call(http.MethodPost, "/internal/v1/connections/con_1/bootstrap", connectorToken,
		strings.NewReader(`{"connection_id":"con_1"}`))
	if w.Code != 409 || !strings.Contains(w.Body.String(), `"bootstrap_run_id":"bsr_2"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
