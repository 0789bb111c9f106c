package httpapi

import (
	"context"
	"strings"
	"testing"

	"storefront.internal/edge/internal/intake"
	"storefront.internal/edge/internal/ratelimit"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/signal"
)

// Each request has the errors of all later checks too, so that the answer shows which check comes first.
func TestOrderOfChecks(t *testing.T) {
	t.Parallel()
	h := start(t, func(c *Config) {
		c.RateLimiter = ratelimit.New(ratelimit.Config{PerKey: ratelimit.Quota{PerSecond: 1e-6, Burst: 1},
			PerAddress: ratelimit.Quota{PerSecond: 1e-6, Burst: 1}})
	})
	broken := []string{"Content-Type: text/html", "Content-Encoding: gzip"}
	h.signals.do = func(context.Context, intake.Request) ([]signal.Result, error) {
		return nil, fault.New(fault.SignalsUnavailable, "")
	}
	h.expect(h.post("/v1/connections/con_mine/", "", "{", broken...), 404, fault.NotFound)
	h.expect(strings.Replace(h.post(myPath, "", "{", broken...), "POST", "PUT", 1), 405,
		fault.MethodNotAllowed)
	h.expect(h.post(myPath, "spk_wrong", "{", broken...), 401, fault.Unauthorized)
	h.expect(h.post(myPath, h.foreign, "{", broken...), 403, fault.ForbiddenConnection)
	h.expect(h.post("/v1/connections/con_unknown/storefront-signals", h.reader, "{", broken...), 403,
		fault.ForbiddenConnection)
	h.expect(h.post(myPath, h.reader, "{", broken...), 403, fault.ForbiddenScope)
	h.expect(h.post(myPath, h.secret, "{", broken...), 400, fault.InvalidRequest) // takes the one token
	h.expect(h.post(myPath, h.secret, "{", broken...), 429, fault.RateLimited)
	if n := len(h.signals.requests()); n != 0 {
		t.Errorf("%d requests reached the use case", n)
	}
}

// A body that is too large passes the same checks.
func TestOrderOfChecksForLargeBodies(t *testing.T) {
	t.Parallel()
	h := start(t)
	large := strings.Repeat("x", MaxBody+1)
	h.expect(h.post("/v1/nothing", "", large), 404, fault.NotFound)
	h.expect(h.post(myPath, "", large), 401, fault.Unauthorized)
	h.expect(h.post(myPath, h.foreign, large), 403, fault.ForbiddenConnection)
	if _, closed := h.one(h.post(myPath, h.secret, large)); !closed {
		t.Error("the connection was kept")
	}
	h.expect(h.post(myPath, h.secret, large), 413, fault.PayloadTooLarge)
	h.expect(h.post(myPath, h.secret, strings.Repeat("x", MaxBody)), 202, "")
}

func TestPathsAsSent(t *testing.T) {
	t.Parallel()
	h := start(t)
	for _, path := range []string{"/", "/v1", "//v1/connections/con_mine/storefront-signals",
		"/v1//connections/con_mine/storefront-signals",
		"/v1/./connections/con_mine/storefront-signals", "/v1/x/../connections/con_mine/storefront-signals",
		"/v1/../internal/v1/installations",
		"/v1/connections/con_mine/storefront-signals/", "/v1/connections/con_mine/storefront-signals%00",
		"/v1/connections/con_mine%2fstorefront-signals",
		"/v1/connections/con_mine%2Fx/storefront-signals", "/v1/connections/%63on_mine/storefront-signals",
		"/v1/connections//storefront-signals",
		"/v1/connections/con_/storefront-signals", "/v1/connections/str_mine/storefront-signals",
		"/v1/connections/con_a.b/storefront-signals",
		"/v1/connections/con_" + strings.Repeat("a", 65) + "/storefront-signals",
		"/V1/connections/con_mine/storefront-signals",
		"/v1/connections/con_mine/storefront-signals;a", "/healthz/", "/v1/healthz",
		"/internal/v1/installations", "/v1/catalog/items/itm_1/x", "/.", "/..", "/%2e%2e/healthz",
		"/v1/connections/con_mine/storefront-signals#x"} {
		if r := h.expect(h.post(path, h.secret, batch), 404,
			fault.NotFound); r.Header.Get("WWW-Authenticate") != "" {
			t.Errorf("%s: asks for a credential", path)
		}
	}
	if h.keys.calls() != 0 || len(h.signals.requests()) != 0 {
		t.Errorf("%d look-ups, %d calls", h.keys.calls(), len(h.signals.requests()))
	}
	h.expect(h.post(myPath+"?utm=1", h.secret, batch), 202, "")
	h.expect(h.post("http://other.example"+myPath, h.secret, batch), 202, "")
	h.expect(h.post("/v1/connections/con_"+strings.Repeat("a", 64)+"/storefront-signals", h.secret, batch),
		403, fault.ForbiddenConnection)
}

func TestMethods(t *testing.T) {
	t.Parallel()
	h := start(t)
	for _, tc := range []struct{ method, path, allow string }{
		{"GET", myPath, "POST, OPTIONS"}, {"HEAD", myPath, "POST, OPTIONS"},
		{"PUT", recPath, "POST, OPTIONS"},
		{"POST", "/healthz", "GET, HEAD, OPTIONS"}, {"DELETE", "/healthz", "GET, HEAD, OPTIONS"},
		{"BREW", "/healthz", "GET, HEAD, OPTIONS"},
	} {
		r := h.expect(tc.method+" "+tc.path+" HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", 405, "")
		if got := r.Header.Get("Allow"); got != tc.allow {
			t.Errorf("%s %s: Allow %q, want %q", tc.method, tc.path, got, tc.allow)
		}
	}
}

func TestPreflight(t *testing.T) {
	t.Parallel()
	h := start(t)
	for _, path := range []string{myPath, recPath, "/healthz", "/nothing/at//all", "*"} {
		r := h.expect("OPTIONS "+path+
			" HTTP/1.1\r\nHost: x\r\nOrigin: https://shop.example\r\nAccess-Control-Request-Method: "+
			"POST\r\n\r\n", 204, "")
		for name, want := range map[string]string{
			"Access-Control-Allow-Origin": "*", "Access-Control-Max-Age": "7200",
			"Access-Control-Allow-Methods": "GET, HEAD, POST, OPTIONS",
			"Access-Control-Allow-Headers": "Authorization, Content-Type, X-Request-Id, If-None-Match, " +
				"traceparent",
		} {
			if got := r.Header.Get(name); got != want {
				t.Errorf("%s: %s %q, want %q", path, name, got, want)
			}
		}
		if len(r.body) != 0 || r.Header.Get("RateLimit") != "" {
			t.Errorf("%s: %v %q", path, r.Header, r.body)
		}
	}
	if h.keys.calls() != 0 {
		t.Error("a preflight asked for a key")
	}
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	h := start(t)
	for auth, status := range map[string]int{
		"Bearer " + h.secret: 202, "bearer " + h.secret: 202, "BEARER  " + h.secret + " ": 202,
		"": 401, "Bearer": 401, "Bearer ": 401, "Basic " + h.secret: 401, h.secret: 401, "Bearer " +
			h.secret + " x": 401, "Bearer spk_unknown": 401,
	} {
		request := h.post(myPath, "", batch, "Authorization: "+auth)
		r := h.first(request)
		if r.StatusCode != status {
			t.Errorf("Authorization %q: %d, want %d", auth, r.StatusCode, status)
		}
		if r.StatusCode == 401 && r.Header.Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("Authorization %q: WWW-Authenticate %q", auth, r.Header.Get("WWW-Authenticate"))
		}
	}
	if strings.Contains(h.log.String(), h.secret[:20]) {
		t.Error("the log holds the key")
	}
}

func TestPageUnload(t *testing.T) {
	t.Parallel()
	h := start(t)
	off := start(t, func(c *Config) { c.Beacon = false })
	plain := "Content-Type: text/plain;charset=UTF-8"
	for name, tc := range map[string]struct {
		h       *harness
		request string
		status  int
	}{
		"key in the query": {h, h.post(myPath+"?key="+h.secret, "", batch, plain), 202},
		"a header wins":    {h, h.post(myPath+"?key="+h.secret, h.foreign, batch, plain), 403},
		"a broken header wins": {h,
			h.post(myPath+"?key="+h.secret, "", batch, plain, "Authorization: Basic x"), 401},
		"text/plain with a header":       {h, h.post(myPath, h.secret, batch, plain), 202},
		"query does not count with JSON": {h, h.post(myPath+"?key="+h.secret, "", batch), 401},
		"no key at all":                  {h, h.post(myPath, "", batch, plain), 401},
		"wrong key":                      {h, h.post(myPath+"?key=spk_x", "", batch, plain), 401},
		"not for recommendations":        {h, h.post(recPath+"?key="+h.secret, "", batch, plain), 401},
		"recommendations are JSON":       {h, h.post(recPath, h.secret, batch, plain), 400},
		"another type": {h,
			h.post(myPath, h.secret, batch, "Content-Type: application/x-www-form-urlencoded"), 400},
		"no type": {h,
			strings.Replace(h.post(myPath, h.secret, batch), "Content-Type: application/json\r\n", "", 1),
			400},
		"JSON with parameters": {h,
			h.post(myPath, h.secret, batch, "Content-Type: Application/JSON ; charset=utf-8"), 202},
		"not quite JSON": {h,
			h.post(myPath, h.secret, batch, "Content-Type: application/jsonx"), 400},
		"switched off, query":  {off, off.post(myPath+"?key="+off.secret, "", batch, plain), 401},
		"switched off, header": {off, off.post(myPath, off.secret, batch, plain), 400},
	} {
		r := tc.h.first(tc.request)
		if r.StatusCode != tc.status {
			t.Errorf("%s: %d, want %d: %s", name, r.StatusCode, tc.status, r.body)
		}
	}
	for _, h := range []*harness{h, off} {
		if log := h.log.String(); strings.Contains(log, "spk_") || strings.Contains(log, "key=") {
			t.Errorf("the log holds a query: %s", log)
		}
	}
}
