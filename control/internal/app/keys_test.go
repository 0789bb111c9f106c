package app

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"storefront.internal/shared/storekey"
)

func TestKeyLifeCycle(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	con, _ := b.connect("store-1")
	other, _ := b.connect("store-2")
	before := b.version()
	first, second := b.issue(con), b.issue(con)
	b.awaitPublished()
	if !storekey.WellFormed([]byte(first.Secret)) || first.Secret == second.Secret ||
		len(first.Scopes) != 3 || first.RevokedAt != nil {
		t.Fatalf("issued %+v, %+v", first, second)
	}
	var grant storekey.Grant
	if err := json.Unmarshal([]byte(b.record(first.Secret)), &grant); err != nil ||
		string(grant.KeyID) != first.ID || string(grant.ConnectionID) != con {
		t.Errorf("Redis holds %q (%v)", b.record(first.Secret), err)
	}
	if v := b.version(); v != before+2 || b.redisVersion() != v {
		t.Errorf("version %d after %d and two keys, Redis %d", v, before, b.redisVersion())
	}
	if got := b.list(con); len(got) != 2 || got[0].ID != second.ID || got[1].Secret != first.Secret {
		t.Errorf("listed %+v", got)
	}
	path := "/connections/" + con + "/api-keys/" + first.ID
	for range 2 {
		if a := b.call("DELETE", path, backendToken, ""); a.status != 204 || a.body != "" {
			t.Errorf("revoke: %d %s", a.status, a.body)
		}
		b.awaitPublished()
		if b.record(first.Secret) != "revoked" || b.version() != before+3 || b.redisVersion() != before+3 {
			t.Errorf("after the revocation Redis holds %q, versions %d, %d", b.record(first.Secret),
				b.version(), b.redisVersion())
		}
	}
	if got := b.list(con); len(got) != 1 || got[0].ID != second.ID {
		t.Errorf("listed %+v", got)
	}
	for _, path := range []string{
		"/connections/" + other + "/api-keys/" + second.ID, "/connections/con_none/api-keys/" + second.ID,
		"/connections/" + con + "/api-keys/key_none",
	} {
		if a := b.call("DELETE", path, backendToken, ""); a.status != 404 {
			t.Errorf("DELETE %s: %d", path, a.status)
		}
	}
	for _, method := range []string{"GET", "POST"} {
		if a := b.call(method, "/connections/con_none/api-keys", backendToken, ""); a.status != 404 {
			t.Errorf("%s keys of no connection: %d", method, a.status)
		}
	}
	if b.version() != before+3 {
		t.Error("what was refused raised the version")
	}
}

func TestIssueWithScopes(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	con, _ := b.connect("store-1")
	var k key
	b.call("POST", "/connections/"+con+"/api-keys", backendToken,
		`{"scopes":["signals:write","catalog:read","signals:write"]}`).decode(t, &k)
	if strings.Join(k.Scopes, " ") != "catalog:read signals:write" {
		t.Errorf("scopes %q", k.Scopes)
	}
	before := b.version()
	if a := b.call("POST", "/connections/"+con+"/api-keys", backendToken,
		`{"scopes":["catalog:write"]}`); a.status != 422 || !strings.Contains(a.body, `"unknown_scope"`) {
		t.Errorf("%d %s", a.status, a.body)
	}
	if b.version() != before {
		t.Error("a refused key raised the version")
	}
}

func TestTwoControlsIssueAndRevokeAtOnce(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	second := b.run(b.cfg)
	con, _ := b.connect("store-1")
	const each = 20
	var wg sync.WaitGroup
	for _, a := range []*App{b.app, second} {
		for range each {
			wg.Go(func() {
				var k key
				b.callOn(a, "POST", "/connections/"+con+"/api-keys", backendToken, "").decode(t, &k)
				for _, on := range []*App{b.app, second} { // both revoke the same key at once
					wg.Go(func() {
						if got := b.callOn(on, "DELETE", "/connections/"+con+"/api-keys/"+k.ID, backendToken,
							""); got.status != 204 {
							t.Errorf("revoke: %d %s", got.status, got.body)
						}
						if b.record(k.Secret) != "revoked" {
							t.Errorf("a revocation was answered and Redis holds %q", b.record(k.Secret))
						}
					})
				}
			})
		}
	}
	wg.Wait()
	var keys, revoked, changes int64
	b.scan(&keys, `SELECT count(*) FROM control.api_keys`)
	b.scan(&revoked, `SELECT count(*) FROM control.api_keys WHERE revoked_at IS NOT NULL`)
	b.scan(&changes, `SELECT count(DISTINCT changed_version) FROM control.api_keys`)
	if keys != 2*each || revoked != keys || changes != keys || len(b.list(con)) != 0 {
		t.Errorf("%d keys, %d revoked, %d versions", keys, revoked, changes)
	}
	b.awaitPublished()
}

func TestSwappedSecretsDoNotOpen(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	con, _ := b.connect("store-1")
	first, second := b.issue(con), b.issue(con)
	b.exec(`UPDATE control.api_keys a SET sealed_secret = o.sealed_secret FROM control.api_keys o
		WHERE a.api_key_id IN ($1, $2) AND o.api_key_id IN ($1, $2) AND a.api_key_id <> o.api_key_id`, first.ID, second.ID)
	a := b.call("GET", "/connections/"+con+"/api-keys", backendToken, "")
	if a.status != 500 || strings.Contains(a.body, "spk_") ||
		!strings.Contains(b.log.String(), "does not open") {
		t.Errorf("swapped secrets: %d %s", a.status, a.body)
	}
	other, _ := b.connect("store-2")
	b.exec(`UPDATE control.api_keys SET connection_id = $1 WHERE api_key_id = $2`, other, first.ID)
	if a := b.call("GET", "/connections/"+other+"/api-keys", backendToken, ""); a.status != 500 {
		t.Errorf("a secret opens under another connection: %d %s", a.status, a.body)
	}
}

func TestKeysThatAreDigestsOnly(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	con, _ := b.connect("store-1")
	b.issue(con)
	b.exec(`INSERT INTO control.api_keys (api_key_id, connection_id, digest, scopes, created_at)
		VALUES ('key_old', $1, sha256('old'), '{signals:write}', now() - interval '1 day')`, con)
	a := b.call("GET", "/connections/"+con+"/api-keys", backendToken, "")
	var got struct{ Keys []map[string]any }
	a.decode(t, &got)
	if len(got.Keys) != 2 || got.Keys[1]["api_key_id"] != "key_old" {
		t.Fatalf("listed %s", a.body)
	}
	if _, has := got.Keys[1]["secret"]; has || got.Keys[0]["secret"] == nil {
		t.Errorf("listed %s", a.body)
	}
	if v, has := got.Keys[1]["revoked_at"]; !has || v != nil {
		t.Errorf("revoked_at is not null: %s", a.body)
	}
}

func TestOneStoreOneConnection(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	const at = 64
	var wg sync.WaitGroup
	statuses := make([]int, at)
	for i := range at {
		wg.Go(func() {
			statuses[i] = b.call("POST", "/connections", connectorToken,
				`{"external_store_id":"same","store_profile":{"name":"Läden"}}`).status
		})
	}
	wg.Wait()
	slices.Sort(statuses)
	if statuses[0] != 201 || statuses[1] != 409 || statuses[at-1] != 409 {
		t.Errorf("statuses %v", statuses)
	}
	var name string
	b.scan(&name, `SELECT store_profile ->> 'name' FROM control.connections`)
	if name != "Läden" {
		t.Errorf("stored the name %q", name)
	}
}

func TestConnectorTokens(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	con, token := b.connect("store-1")
	var macs []string
	mac := func() {
		var m []byte
		b.scan(&m, `SELECT token_hmac FROM control.connector_tokens WHERE connection_id = $1`, con)
		macs = append(macs, hex.EncodeToString(m))
	}
	mac()
	var rotated struct{ Token string }
	a := b.call("POST", "/connections/"+con+"/token", connectorToken, "")
	a.decode(t, &rotated)
	mac()
	if a.status != 201 || rotated.Token == token || macs[0] == macs[1] || !strings.HasPrefix(token, "sct_") ||
		len(token) != 47 {
		t.Errorf("%d, %q then %q, HMACs %v", a.status, token, rotated.Token, macs)
	}
	b.exec(`INSERT INTO control.connections (connection_id, store_id, provider, external_store_id) VALUES ('con_p', 'str_p', 'shopify', 'p')`)
	for _, path := range []string{"con_p", "con_none"} {
		if a := b.call("POST", "/connections/"+path+"/token", connectorToken, ""); a.status != 404 {
			t.Errorf("rotate the token of %s: %d", path, a.status)
		}
	}
	off := b.run(func() Config { c := b.cfg; c.ConnectorPepper = ""; return c }())
	for _, path := range []string{"/connections", "/connections/" + con + "/token"} {
		if a := b.callOn(off, "POST", path, connectorToken, `{"external_store_id":"x"}`); a.status != 409 ||
			!strings.Contains(a.body, `"principal_off"`) {
			t.Errorf("%s without a pepper: %d %s", path, a.status, a.body)
		}
	}
}

func TestQueueOverRealStores(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	a := b.call("GET", "/brain-interactions/queue", backendToken, "")
	if a.status != 200 || !strings.Contains(a.body, `"state":"disabled"`) ||
		!strings.Contains(a.body, `"connections":[]`) {
		t.Errorf("an empty queue: %d %s", a.status, a.body)
	}
	if a := b.call("POST", "/brain-interactions/resume", connectorToken, ""); a.status != 409 ||
		!strings.Contains(a.body, `"not_blocked"`) {
		t.Errorf("resume: %d %s", a.status, a.body)
	}
	for i := range 3 {
		b.exec(`INSERT INTO delivery.dead (connection_id, kind, id, lane, body, created_at, died_at, attempts,
				reason)
			VALUES ('con_1', 1, $1, 0, '{}', now(), now(), 8, 'rejected'),
				('con_1', 2, $2, 0, '{}', now(), now(), 8, 'http_422')`,
			fmt.Sprint("sig_", i), fmt.Sprint("obs_", i))
	}
	var page struct {
		Dead []struct {
			SignalID string `json:"signal_id"`
		}
		Cursor string
	}
	b.call("GET", "/brain-interactions/dead?limit=2&connection_id=con_1", connectorToken, "").decode(t, &page)
	if len(page.Dead) != 2 || page.Cursor == "" {
		t.Errorf("first page %+v", page)
	}
	if a := b.call("GET", "/brain-interactions/dead?limit=2&cursor="+page.Cursor, connectorToken,
		""); a.status != 200 || strings.Contains(a.body, "cursor") {
		t.Errorf("second page: %d %s", a.status, a.body)
	}
	if a := b.call("GET", "/brain-interactions/dead?cursor=x", connectorToken, ""); a.status != 400 {
		t.Errorf("a cursor that is none: %d %s", a.status, a.body)
	}
	if a := b.call("POST", "/brain-interactions/dead/replay", connectorToken, `{}`); a.status != 400 {
		t.Errorf("replay of nothing: %d %s", a.status, a.body)
	}
	if a := b.call("POST", "/brain-interactions/dead/replay", connectorToken,
		`{"signal_ids":["sig_0","sig_none"]}`); a.body != `{"replayed":1}` {
		t.Errorf("replay: %d %s", a.status, a.body)
	}
	if a := b.call("GET", "/brain-interactions/queue", backendToken,
		""); !strings.Contains(a.body, `"pending":1`) {
		t.Errorf("after the replay: %s", a.body)
	}
	envelopes := b.call("POST", "/brain-interactions/dead/replay", connectorToken,
		`{"kind":"envelope","connection_id":"con_1","signal_ids":["obs_0","obs_2"]}`)
	if envelopes.body != `{"replayed":2}` {
		t.Errorf("replay of envelopes: %d %s", envelopes.status, envelopes.body)
	}
	b.call("GET", "/brain-interactions/dead?kind=envelope", connectorToken, "").decode(t, &page)
	if len(page.Dead) != 1 || page.Dead[0].SignalID != "obs_1" {
		t.Errorf("dead envelopes that remain: %+v", page)
	}
}
