package httpapi

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"storefront.internal/shared/fault"
	"storefront.internal/shared/storekey"
)

func TestPathsAsTheyWereSent(t *testing.T) {
	t.Parallel()
	b := newBundle(t, allTokens())
	f := func(method, target string, want int, allow string) {
		t.Helper()
		w := b.call(method, target, backendToken, nil)
		if w.Code != want || w.Header().Get("Allow") != allow {
			t.Errorf("%s %s: %d, Allow %q; want %d, %q", method, target, w.Code,
				w.Header().Get("Allow"), want, allow)
		}
	}
	const keys = "/internal/v1/connections/con_1/api-keys"
	f("GET", keys, 200, "")
	f("GET", keys+"?x=1", 200, "")
	f("HEAD", keys, 200, "")
	f("PUT", keys, 405, "GET, HEAD, POST")
	f("OPTIONS", keys, 405, "GET, HEAD, POST")
	f("GET", keys+"/key_1", 405, "DELETE")
	f("GET", "/internal/v1/brain-interactions/resume", 405, "POST")
	for _, unknown := range []string{
		"/", "/healthz", "/internal/v1", "/internal/v1/", keys + "/", "/" + keys,
		"/internal//v1/connections/con_1/api-keys",
		"/internal/v1/./connections/con_1/api-keys", "/internal/v1/x/../connections/con_1/api-keys",
		"/internal/v1/connections/con_1%2fapi-keys", "/internal/v1/connections/con%5f1/api-keys",
		"/internal/v1/connections/con_%31/api-keys", "/Internal/v1/connections/con_1/api-keys",
		"/internal/v1/connections//api-keys", "/internal/v1/connections/str_1/api-keys",
		"/internal/v1/connections/con_/api-keys", "/internal/v1/connections/con_" +
			strings.Repeat("x", 65) + "/api-keys",
		"/internal/v1/connections/con_1/api-keys/con_1", "/internal/v1/connections/con_ä/api-keys",
		"/internal/v1/observations/obs_/raw", "/internal/v1/observations/con_1/raw",
		"/internal/v1/observations/obs_1%2f/raw", "/internal/v1/connections/con_1/bootstraps",
		"/internal/v1/connections/con_1/visitors", "/internal/v1/connections/con_1/visitors/ses_1",
		"/internal/v1/connections/con_1/visitors/vis_",
		"/internal/v1/connections/con_1/visitors/vis_a.b",
		"/internal/v1/connections/con_1/visitors/vis_a%2fb", "/internal/v1/connections/con_1/visitors/vis_1/",
	} {
		f("GET", unknown, 404, "")
		f("DELETE", unknown, 404, "")
	}
}

func TestCredentialsComeBeforeBodies(t *testing.T) {
	t.Parallel()
	b := newBundle(t, allTokens())
	const keys = "/internal/v1/connections/con_1/api-keys"
	f := func(name string, want int, headers ...string) {
		t.Helper()
		w := b.call("POST", keys, "", strings.NewReader("{"), func(r *http.Request) {
			for _, h := range headers {
				r.Header.Add("Authorization", h)
			}
		})
		if w.Code != want || (want == 401) != (w.Header().Get("WWW-Authenticate") == "Bearer") {
			t.Errorf("%s: %d, WWW-Authenticate %q", name, w.Code, w.Header().Get("WWW-Authenticate"))
		}
	}
	f("right token, bad body", 400, "Bearer "+backendToken)
	f("lower case", 400, "bearer "+backendToken)
	f("upper case", 400, "BEARER "+backendToken)
	f("two blanks", 400, "Bearer  "+backendToken)
	f("none", 401)
	f("empty", 401, "")
	f("no scheme", 401, backendToken)
	f("another scheme", 401, "Basic "+backendToken)
	f("empty token", 401, "Bearer ")
	f("no token", 401, "Bearer")
	f("another principal", 401, "Bearer "+connectorToken)
	f("a stranger", 401, "Bearer "+foreignToken)
	f("two headers", 401, "Bearer "+backendToken, "Bearer "+backendToken)
	f("store key", 401, "Bearer "+storekey.NewSecret())
}

func TestIssueKeyReadsScopes(t *testing.T) {
	t.Parallel()
	f := func(body string, want int, scopes []string, pointers ...string) {
		t.Helper()
		b := newBundle(t, allTokens())
		w := b.call("POST", "/internal/v1/connections/con_1/api-keys", backendToken, strings.NewReader(body))
		if w.Code != want {
			t.Errorf("%.60s: %d, %s", body, w.Code, w.Body)
			return
		}
		if want == 201 && len(b.fake.scopes)+len(scopes) > 0 && !reflect.DeepEqual(b.fake.scopes, scopes) {
			t.Errorf("%.60s: scopes %q, want %q", body, b.fake.scopes, scopes)
		}
		if want == 400 {
			checkPointers(t, body, w, pointers)
		}
	}
	f(``, 201, nil)
	f(`{}`, 201, nil)
	f(` {"scopes":[]} `, 201, nil)
	f(`{"scopes":null}`, 201, nil)
	f(`{"Scopes":["x"],"other":{"a":[1]}}`, 201, nil)
	f(`{"scopes":["signals:write","signals:write"]}`, 201, []string{"signals:write", "signals:write"})
	f(`{"scopes":["\u0073ignals:write"]}`, 201, []string{"signals:write"})
	f(`{"scopes":["catalog:write"]}`, 422, nil)
	f(`{"scopes":[""]}`, 422, nil)
	f(`{"scopes":"signals:write"}`, 400, nil, "/scopes")
	f(`{"scopes":["signals:write",null]}`, 400, nil, "/scopes/1")
	f(`{"scopes":[["signals:write"]]}`, 400, nil, "/scopes/0")
	f(`{"scopes":[`+strings.Repeat(`"signals:write",`, maxScopes)+`"signals:write"]}`, 400, nil, "/scopes")
	f(`null`, 400, nil, "")
	f(`[]`, 400, nil, "")
	f(`"x"`, 400, nil, "")
	malformed := []string{
		` `, `{`, `{}x`, `{} {}`, `{"a":1,}`, `{'a':1}`, `{"a":01}`, `{"a":NaN}`, "\ufeff{}",
		"{\"a\":\"\xff\"}", `{"a":"\ud800"}`,
		`{"scopes":[],"scopes":[]}`, `{"a":1,"\u0061":2}`, `{"x":{"a":1,"a":2}}`,
		"{\"a\":\"\n\"}", `{"a":}`, `nul`,
		`{"a":` + strings.Repeat("[", 32) + strings.Repeat("]", 32) + `}`, strings.Repeat("[", 100000),
	}
	for _, body := range malformed {
		f(body, 400, nil, "")
	}
	f(`{"a":`+strings.Repeat("[", 31)+strings.Repeat("]", 31)+`}`, 201, nil)
}

func TestCreateConnectionReadsItsBody(t *testing.T) {
	t.Parallel()
	f := func(body string, want int, pointers ...string) *fake {
		t.Helper()
		b := newBundle(t, allTokens())
		w := b.call("POST", "/internal/v1/connections", connectorToken, strings.NewReader(body))
		if w.Code != want {
			t.Errorf("%.60s: %d, %s", body, w.Code, w.Body)
		} else if want == 400 {
			checkPointers(t, body, w, pointers)
		}
		return b.fake
	}
	long := strings.Repeat("ä", 255)
	got := f(`{"external_store_id":"`+long+
		`","store_profile":{"name":"Läden & Co","country":null,"currency":"ARS","phone":7}}`, 201)
	if got.external != long || got.profile == nil || *got.profile.Name != "Läden & Co" ||
		got.profile.Country != nil || *got.profile.Currency != "ARS" {
		t.Errorf("got %q, %+v", got.external, got.profile)
	}
	if got := f(`{"external_store_id":"x","store_profile":null}`, 201); got.profile != nil {
		t.Error("a null profile is not absent")
	}
	f(``, 400, "")
	f(`{"external_store_id":null}`, 400, "/external_store_id")
	f(`{"external_store_id":""}`, 400, "/external_store_id")
	f(`{"external_store_id":7}`, 400, "/external_store_id")
	f(`{"external_store_id":"`+long+`x"}`, 400, "/external_store_id")
	f(`{"external_store_id":"a\u0000b"}`, 400, "/external_store_id")
	f(`{"external_store_id":"a\u0085b"}`, 400, "/external_store_id")
	f(`{"external_store_id":"x","store_profile":[]}`, 400, "/store_profile")
	f(`{"store_profile":{"name":1,"domain":"a\u0007","language":"`+long+`x"}}`, 400,
		"/external_store_id", "/store_profile/name", "/store_profile/domain", "/store_profile/language")
}

func checkPointers(t *testing.T, body string, w *httptest.ResponseRecorder, want []string) {
	t.Helper()
	var p struct{ Errors []fault.Field }
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
		t.Errorf("%.60s: %v", body, err)
		return
	}
	var got []string
	for _, e := range p.Errors {
		got = append(got, e.Pointer)
		if e.Code == "" || e.Detail == "" {
			t.Errorf("%.60s: incomplete %+v", body, e)
		}
	}
	if strings.Join(got, " ") != strings.Join(want, " ") || len(got) != len(want) {
		t.Errorf("%.60s: pointers %q, want %q", body, got, want)
	}
}

func TestPanicsBecomeProblems(t *testing.T) {
	t.Parallel()
	b := newBundle(t, allTokens())
	b.api.cfg.Keys = nil // a nil interface: the handler panics
	w := b.call("GET", "/internal/v1/connections/con_1/api-keys", backendToken, nil)
	if w.Code != 500 || !strings.Contains(w.Body.String(), `"code":"internal_error"`) ||
		strings.Contains(w.Body.String(), "nil") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if !strings.Contains(b.log.String(), "handler panicked") {
		t.Error("the panic is not logged")
	}
}

func TestRequestIDsAndHead(t *testing.T) {
	t.Parallel()
	b := newBundle(t, allTokens())
	server := httptest.NewUnstartedServer(nil)
	server.Config = NewServer(b.api, b.api.cfg.Logger)
	server.Start()
	defer server.Close()
	f := func(method, id string, keep bool) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method,
			server.URL+"/internal/v1/brain-interactions/queue", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Request-Id", id)
		r.Header.Set("Authorization", "Bearer "+backendToken)
		r.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
		res, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != 200 {
			t.Fatal(res.StatusCode, err)
		}
		got := res.Header.Get("X-Request-Id")
		if got == "" || (got == id) != keep {
			t.Errorf("request id %q became %q", id, got)
		}
		if (method == "HEAD") != (len(body) == 0) || res.ContentLength <= 0 {
			t.Errorf("%s: a body of %d bytes, Content-Length %d", method, len(body), res.ContentLength)
		}
		if !strings.Contains(b.log.String(), got) || !strings.Contains(b.log.String(),
			"0af7651916cd43dd8448eb211c80319c") {
			t.Error("the ids are not in the log")
		}
	}
	f("GET", "abc.DEF_1-2", true)
	f("HEAD", strings.Repeat("x", 128), true)
	f("GET", strings.Repeat("x", 129), false)
	f("GET", "a b", false)
	f("GET", "", false)
}

// TestNoCanaryAnywhere sends secrets in every part of a request, at debug level and without redaction of the
// log.
func TestNoCanaryAnywhere(t *testing.T) {
	t.Parallel()
	b := newBundle(t, allTokens())
	b.fake.fail = fault.Wrap(fault.ServiceUnavailable, "", io.ErrUnexpectedEOF)
	for _, r := range b.api.routes {
		target := strings.NewReplacer("{connection_id}", "con_1", "{api_key_id}", "key_1", "{observation_id}",
			"obs_1").Replace(r.pattern)
		for _, token := range []string{connectorToken, backendToken, engineToken, foreignToken,
			canarySecret, holderToken} {
			for _, fail := range []error{nil, b.fake.fail} {
				b.fake.fail = fail
				body := `{"scopes":["` + canaryText + `"],"external_store_id":7,"` + canaryText +
					`":1,"signal_ids":["` + canaryText + `"]}`
				for _, raw := range []string{body, body + canaryText, ""} {
					w := b.call(r.method,
						target+"?cursor="+canaryText+"&key="+canarySecret+"&limit="+canaryText, token,
						strings.NewReader(raw))
					if w.Code >= 400 && strings.Contains(w.Body.String(), "canary") {
						t.Errorf("%s: %s", r.operation, w.Body)
					}
				}
			}
		}
	}
	b.call("GET", "/"+canarySecret+"/"+canaryText, connectorToken, nil)
	b.call(strings.ToUpper(canaryText), "/", connectorToken, nil,
		func(r *http.Request) { r.Header.Set("Traceparent", canaryText) })
	if log := b.log.String(); strings.Contains(strings.ToLower(log), "canary") ||
		!strings.Contains(log, `"operation":"issue_key"`) {
		t.Errorf("a canary is in the log, or the log is empty:\n%s", log)
	}
	families, err := b.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if strings.Contains(strings.ToLower(family.String()), "canary") {
			t.Errorf("a canary is in metric %s", family.GetName())
		}
	}
}

func TestInstantsAreMicrosecondsInUTC(t *testing.T) {
	t.Parallel()
	f := func(at time.Time, want string) {
		t.Helper()
		got, err := json.Marshal(timestamp(at))
		if err != nil || string(got) != `"`+want+`"` {
			t.Errorf("%v: %s, %v", at, got, err)
		}
	}
	f(at(), "2026-03-01T11:00:00.123456Z")
	f(time.Unix(0, 0), "1970-01-01T00:00:00Z")
	f(time.Unix(0, 500_000_000), "1970-01-01T00:00:00.5Z")
}
