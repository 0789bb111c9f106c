package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"storefront.internal/control/internal/installation"
	"storefront.internal/control/internal/shop"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
)

// canaryAccess is the credential of a store.
const canaryAccess = "canary-access-token"

// fakeInstallations has its own Open.
type fakeInstallations struct{ *fake }

func (f fakeInstallations) Open(_ context.Context, caller string,
	r installation.Request) (installation.Installed, error) {
	f.caller, f.install = caller, r
	if r.Provider != caller {
		return installation.Installed{}, fault.New(fault.UnknownProvider, "")
	}
	return installation.Installed{InstallationID: "ins_1", ConnectionID: "con_1", EndpointID: "whe_1",
		Created: f.installed.Created}, f.fail
}

func (f fakeInstallations) Connection(_ context.Context, c ident.ConnectionID) (installation.View, error) {
	return installation.View{ConnectionID: c, StoreID: "str_1", Provider: "shopify", ExternalStoreID: "a",
		State: "active", Installation: f.status, Disabled: f.disabled,
		CredentialRefusedAt: f.refusedAt}, f.of(c)
}

func (f fakeInstallations) Connections(_ context.Context,
	q installation.Query) ([]installation.View, error) {
	f.listed = q
	var all []installation.View
	for _, id := range []ident.ConnectionID{"con_1", "con_2", "con_3"} {
		all = append(all, installation.View{ConnectionID: id, StoreID: "str_1", Provider: "shopify",
			ExternalStoreID: "a", State: "active", Installation: f.status})
	}
	return all[:min(q.Limit, len(all))], nil
}

func TestAConnectorSeesItsOwnProvider(t *testing.T) {
	t.Parallel()
	b := newBundle(t, allTokens())
	for _, tc := range []struct {
		token, query, body string
		providers          []string
	}{
		{connectorToken, "?limit=1", `"cursor":"con_1"`, []string{"shopify", "custom"}},
		{connectorToken, "?limit=2", `"cursor":"con_2"`, []string{"shopify", "custom"}},
		{connectorToken, "?provider=shopify", `"con_3"`, []string{"shopify"}},
		{connectorToken, "?provider=custom", `"con_3"`, []string{"custom"}},
		{connectorToken, "?provider=tiendanube", `{"connections":[]}`, nil},
		{backendToken, "?provider=tiendanube", `"con_3"`, []string{"tiendanube"}},
		{backendToken, "", `"con_3"`, nil},
	} {
		b.fake.listed = installation.Query{}
		w := b.call(http.MethodGet, "/internal/v1/connections"+tc.query, tc.token, nil)
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), tc.body) ||
			!slices.Equal(b.fake.listed.Providers, tc.providers) {
			t.Errorf("%q: %d %s, asked for %+v", tc.query, w.Code, w.Body, b.fake.listed)
		}
	}
}

const installations = "/internal/v1/installations"

// installationBody is a body of open_installation with changed members; a null one is removed.
func installationBody(change map[string]any) string {
	body := map[string]any{"provider": "shopify", "provider_app_id": "app", "external_store_id": "store",
		"access_token": canaryAccess}
	for name, value := range change {
		body[name] = value
	}
	text, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func installationCases(large string) []documented {
	post, get, body := http.MethodPost, http.MethodGet, installationBody(nil)
	const many = "/internal/v1/connections"
	const one = many + "/con_1"
	created := func(f *fake) { f.installed.Created = true }
	failed := func(f *fake) {
		f.status = &installation.Status{ID: "ins_1", State: installation.StateFailed,
			Reason: "credential_refused"}
	}
	troubled := func(f *fake) {
		at := time.Unix(1, 0)
		f.refusedAt = &at
		f.disabled = &installation.Disabled{At: at, By: shop.DisabledByCrashes, Reason: "it crashes"}
	}
	return []documented{
		{"open_installation", post, installations, connectorToken, body, 201, created},
		{"open_installation", post, installations, connectorToken, body, 200, nil},
		{"open_installation", post, installations, connectorToken, `{}`, 400, nil},
		{"open_installation", post, installations, connectorToken, "gzip", 400, nil},
		{"open_installation", post, installations, backendToken, body, 401, nil},
		{"open_installation", post, installations, connectorToken, large, 413, nil},
		{"open_installation", post, installations, connectorToken,
			installationBody(map[string]any{"provider": "tiendanube"}), 422, nil},
		{"open_installation", post, installations, connectorToken, body, 500,
			fails(fmt.Errorf("%s", canaryText))},
		{"list_connections", get, many, connectorToken, "", 200, nil},
		{"list_connections", get, many + "?provider=custom&state=active&external_store_id=a&limit=200" +
			"&cursor=con_1", backendToken, "", 200, nil},
		{"list_connections", get, many + "?limit=201", connectorToken, "", 400, nil},
		{"list_connections", get, many + "?state=open", connectorToken, "", 400, nil},
		{"list_connections", get, many + "?cursor=x", connectorToken, "", 400, nil},
		{"list_connections", get, many + "?provider=a&provider=b", connectorToken, "", 400, nil},
		{"list_connections", get, many + "?external_store_id=%00", connectorToken, "", 400, nil},
		{"list_connections", get, many, engineToken, "", 401, nil},
		{"view_connection", get, one, connectorToken, "", 200, nil},
		{"view_connection", get, one, connectorToken, "", 200, failed},
		{"view_connection", get, one, connectorToken, "", 200, troubled},
		{"view_connection", get, one, connectorToken, "gzip", 400, nil},
		{"view_connection", get, one, backendToken, "", 401, nil},
		{"view_connection", get, "/internal/v1/connections/con_none", connectorToken, "", 404, nil},
	}
}

func TestInstallationIsReadWhole(t *testing.T) {
	t.Parallel()
	b := newBundle(t, allTokens())
	proof := strings.Repeat("aB", 32)
	w := b.call(http.MethodPost, installations, connectorToken,
		strings.NewReader(installationBody(map[string]any{
			"scope": "read_products", "browser_proof_sha256": proof,
			"attribution": map[string]any{"utm_source": "x", "gone": nil, "": ""},
			"store_profile": map[string]any{"name": "Shop", "domain": "a.example", "country": "AR",
				"language": "es", "currency": "ARS", "email": "x"},
			"unknown": 7,
		})))
	got := b.fake.install
	if w.Code != 200 || b.fake.caller != "shopify" || got.Provider != "shopify" || got.AppID != "app" ||
		got.ExternalStoreID != "store" ||
		got.AccessToken.Reveal() != canaryAccess || *got.Scope != "read_products" ||
		len(got.BrowserProof) != 32 || *got.Profile.Currency != "ARS" {
		t.Errorf("%d %s: %+v", w.Code, w.Body, got)
	}
	if len(got.Attribution) != 2 || got.Attribution["utm_source"] != "x" {
		t.Errorf("attribution: %v", got.Attribution)
	}
	b.call(http.MethodPost, installations, connectorToken, strings.NewReader(installationBody(nil)))
	if got := b.fake.install; got.Scope != nil || got.Profile != nil || got.BrowserProof != nil ||
		got.Attribution != nil {
		t.Errorf("absent members are there: %+v", got)
	}
	if strings.Contains(b.log.String(), "canary") {
		t.Errorf("a canary is in the log: %s", b.log)
	}
}

// pointersOf returns "code pointer" of each fault.
func pointersOf(t *testing.T, body string) []string {
	t.Helper()
	var p struct{ Errors []fault.Field }
	if err := json.Unmarshal([]byte(body), &p); err != nil {
		t.Fatal(err)
	}
	out := []string{}
	for _, e := range p.Errors {
		out = append(out, e.Code+" "+e.Pointer)
	}
	slices.Sort(out)
	return out
}

func TestInstallationLimits(t *testing.T) {
	t.Parallel()
	b := newBundle(t, allTokens())
	f := func(change map[string]any, want ...string) {
		t.Helper()
		w := b.call(http.MethodPost, installations, connectorToken,
			strings.NewReader(installationBody(change)))
		if len(want) == 0 {
			if w.Code != 200 {
				t.Errorf("refused: %d %s", w.Code, w.Body)
			}
			return
		}
		if got := pointersOf(t, w.Body.String()); w.Code != 400 || !slices.Equal(got, want) {
			t.Errorf("%d %v, want %v", w.Code, got, want)
		}
	}
	long := func(n int) string { return strings.Repeat("é", n) }
	for name, limit := range map[string]int{"provider_app_id": 255, "external_store_id": 255,
		"access_token": 8192} {
		f(map[string]any{name: long(limit)})
		f(map[string]any{name: long(limit + 1)}, "invalid_length /"+name)
	}
	f(map[string]any{"provider": long(65)}, "invalid_length /provider")
	for _, name := range []string{"provider", "provider_app_id", "external_store_id", "access_token"} {
		f(map[string]any{name: nil}, "missing /"+name)
		f(map[string]any{name: ""}, "invalid_length /"+name)
		f(map[string]any{name: 7}, "wrong_type /"+name)
		f(map[string]any{name: "a\nb"}, "invalid_character /"+name)
	}
	f(map[string]any{"scope": long(8192)})
	f(map[string]any{"scope": ""})
	f(map[string]any{"scope": long(8193)}, "invalid_length /scope")
	f(map[string]any{"scope": []string{"a"}}, "wrong_type /scope")
	f(map[string]any{"browser_proof_sha256": strings.Repeat("0", 64)})
	f(map[string]any{"browser_proof_sha256": strings.Repeat("0", 63)}, "invalid_length /browser_proof_sha256")
	f(map[string]any{"browser_proof_sha256": strings.Repeat("0", 65)}, "invalid_length /browser_proof_sha256")
	f(map[string]any{"browser_proof_sha256": strings.Repeat("g", 64)},
		"invalid_character /browser_proof_sha256")
	f(map[string]any{"browser_proof_sha256": strings.Repeat("é", 64)},
		"invalid_character /browser_proof_sha256")
	f(map[string]any{"store_profile": "x"}, "wrong_type /store_profile")
	for _, name := range []string{"name", "domain", "country", "language", "currency"} {
		f(map[string]any{"store_profile": map[string]any{name: long(255)}})
		f(map[string]any{"store_profile": map[string]any{name: long(256)}},
			"invalid_length /store_profile/"+name)
		f(map[string]any{"store_profile": map[string]any{name: 7}}, "wrong_type /store_profile/"+name)
	}
	f(map[string]any{"attribution": map[string]any{long(64): long(256)}})
	f(map[string]any{"attribution": map[string]any{long(65): "x"}}, "invalid_length /attribution")
	f(map[string]any{"attribution": map[string]any{"a/b~c": long(257)}},
		"invalid_length /attribution/a~1b~0c")
	f(map[string]any{"attribution": map[string]any{"a": 7, "b": map[string]any{}}},
		"wrong_type /attribution/a", "wrong_type /attribution/b")
	f(map[string]any{"attribution": []string{}}, "wrong_type /attribution")
	f(map[string]any{"provider": nil, "scope": 7, "attribution": 7}, "missing /provider",
		"wrong_type /attribution", "wrong_type /scope")
	if strings.Contains(b.log.String(), "canary") {
		t.Errorf("a canary is in the log: %s", b.log)
	}
}
