package app

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"

	"storefront.internal/control/internal/installation"
	"storefront.internal/control/internal/seal"
	"storefront.internal/control/internal/shop"
	"storefront.internal/shared/ident"
)

type installed struct {
	InstallationID string `json:"installation_id"`
	ConnectionID   string `json:"connection_id"`
	EndpointID     string `json:"webhook_endpoint_id"`
	Created        bool
}

// install installs a store at Tiendanube and returns the answer with its status.
func (b *bundle) install(store, app, token, more string) (installed, int) {
	b.t.Helper()
	var got installed
	a := b.call("POST", "/installations", connectorToken,
		fmt.Sprintf(`{"provider":"tiendanube","provider_app_id":%q,"external_store_id":%q,"access_token":%q%s}`, app, store, token, more))
	if a.status == 200 || a.status == 201 {
		a.decode(b.t, &got)
	}
	return got, a.status
}

// credential opens the stored credential of a connection with the binding of another.
func (b *bundle) credential(stored, at string) ([]byte, error) {
	b.t.Helper()
	var sealed []byte
	b.scan(&sealed, `SELECT sealed FROM control.credentials WHERE connection_id = $1`, stored)
	sealer, err := seal.Parse([]byte(b.keyset))
	if err != nil {
		b.t.Fatal(err)
	}
	return sealer.Open(sealed, shop.CredentialBinding(ident.ConnectionID(at)))
}

func (b *bundle) text(sql string, args ...any) (out string) {
	b.t.Helper()
	b.scan(&out, sql, args...)
	return out
}

func TestInstallationAndInstallingAgain(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	first, status := b.install("101", "app-1", accessToken,
		`,"scope":"read_products","store_profile":{"name":"Shop","currency":"ARS"},`+
			`"browser_proof_sha256":"`+strings.Repeat("aB", 32)+`","attribution":{"utm_source":"x\u0000"}`)
	if status != 201 || !first.Created || !ident.Valid(ident.Installation, first.InstallationID) ||
		!ident.Valid(ident.Endpoint, first.EndpointID) {
		t.Fatalf("%d %+v", status, first)
	}
	const row = `SELECT concat_ws(' ', provider_app_id, epoch, scope, encode(browser_proof_sha256, 'hex'), attribution) FROM control.installations`
	if got := b.text(row); got != "app-1 1 read_products "+strings.Repeat("ab",
		32)+` {"utm_source":"x\u0000"}` {
		t.Errorf("stored %s", got)
	}
	if secret, err := b.credential(first.ConnectionID, first.ConnectionID); err != nil ||
		string(secret) != accessToken {
		t.Errorf("credential: %v", err)
	}
	endpoints := b.text(`SELECT string_agg(endpoint_id, ' ' ORDER BY endpoint_id) FROM control.endpoints WHERE provider_app_id = 'app-1'`)
	b.exec(`UPDATE control.connections SET state = 'uninstalled'`)
	b.exec(`DELETE FROM control.credentials`)
	second, status := b.install("101", "app-2", accessToken+"-2", "")
	if want := first; status != 200 || second.Created || second.InstallationID != want.InstallationID ||
		second.ConnectionID != want.ConnectionID || second.EndpointID != want.EndpointID {
		t.Errorf("again: %d %+v, first %+v", status, second, first)
	}
	if got := b.text(row); got != "app-2 2" {
		t.Errorf("stored %s", got)
	}
	if got := b.text(`SELECT string_agg(endpoint_id, ' ' ORDER BY endpoint_id) FROM control.endpoints WHERE provider_app_id = 'app-2'`); got != endpoints {
		t.Errorf("endpoints %s, were %s", got, endpoints)
	}
	if secret, err := b.credential(first.ConnectionID, first.ConnectionID); err != nil ||
		string(secret) != accessToken+"-2" {
		t.Errorf("credential: %v", err)
	}
	if got := b.text(`SELECT state || ' ' || store_profile::text FROM control.connections`); got != `active {"name":"Shop","currency":"ARS"}` {
		t.Errorf("connection %s", got)
	}
	if _, status := b.install("102", "app-3", accessToken, ""); status != 422 {
		t.Errorf("an app without a secret: %d", status)
	}
	if _, status := b.install("102", "", accessToken, ""); status != 400 {
		t.Errorf("no app: %d", status)
	}
	a := b.call("POST", "/installations", connectorToken,
		`{"provider":"shopify","provider_app_id":"app-1","external_store_id":"x","access_token":"x"}`)
	if a.status != 422 || !strings.Contains(a.body, "unknown_provider") {
		t.Errorf("another principal's provider: %d %s", a.status, a.body)
	}
}

func TestManyInstallationsOfOneStoreAreOneConnection(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	var (
		mu      sync.Mutex
		wg      sync.WaitGroup
		created int
		seen    = map[string]bool{}
	)
	for i := range 64 {
		wg.Go(func() {
			got, status := b.install("7", "app-1", fmt.Sprintf("%s-%d", accessToken, i), "")
			mu.Lock()
			defer mu.Unlock()
			if want := map[bool]int{true: 201, false: 200}[got.Created]; status != want {
				t.Errorf("status %d of %+v", status, got)
			}
			if got.Created {
				created++
			}
			seen[got.InstallationID+got.ConnectionID+got.EndpointID] = true
		})
	}
	wg.Wait()
	if created != 1 || len(seen) != 1 {
		t.Errorf("%d created, %d different", created, len(seen))
	}
	if got := b.text(`SELECT concat_ws(' ', (SELECT count(*) FROM control.connections), (SELECT count(*) FROM control.credentials),
		(SELECT count(DISTINCT topic) FROM control.endpoints), (SELECT count(*) FROM control.endpoints), (SELECT epoch FROM control.installations),
		(SELECT count(*) FROM control.river_job WHERE kind = 'installation_saga'))`); got != "1 1 13 14 64 64" {
		t.Errorf("stored: %s", got)
	}
}

func TestConnectionIsShown(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	got, _ := b.install("101", "app-1", accessToken, "")
	b.eventually("the saga shows its failure", func() bool {
		var v struct {
			StoreID      string `json:"store_id"`
			Provider     string
			External     string `json:"external_store_id"`
			State        string
			Installation struct {
				ID            string `json:"installation_id"`
				State, Reason string
			}
		}
		b.call("GET", "/connections/"+got.ConnectionID, connectorToken, "").decode(t, &v)
		if v.Provider != "tiendanube" || v.External != "101" || v.State != "active" || v.StoreID == "" ||
			v.Installation.ID != got.InstallationID {
			t.Fatalf("%+v", v)
		}
		return v.Installation.State == string(installation.StateOpened) && v.Installation.Reason != ""
	})
	custom, _ := b.connect("c")
	if a := b.call("GET", "/connections/"+custom, connectorToken, ""); a.status != 200 ||
		strings.Contains(a.body, "installation") || !strings.Contains(a.body, `"provider":"custom"`) {
		t.Errorf("custom: %d %s", a.status, a.body)
	}
	if a := b.call("GET", "/connections/con_x", connectorToken, ""); a.status != 404 {
		t.Errorf("unknown: %d", a.status)
	}
}

func TestACredentialIsOfItsConnectionAndNowhereElse(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	one, _ := b.install("1", "app-1", accessToken+"-1", "")
	two, _ := b.install("2", "app-1", accessToken+"-2", "")
	b.exec(`UPDATE control.credentials a SET sealed = b.sealed FROM control.credentials b WHERE a.connection_id <> b.connection_id`)
	for _, c := range []installed{one, two} {
		if _, err := b.credential(c.ConnectionID, c.ConnectionID); err == nil ||
			strings.Contains(err.Error(), "canary") {
			t.Errorf("a swapped credential: %v", err)
		}
	}
	if secret, err := b.credential(one.ConnectionID, two.ConnectionID); err != nil ||
		string(secret) != accessToken+"-2" {
		t.Errorf("the swap did nothing: %v", err)
	}
	for _, table := range []string{"river_job", "installations", "connections", "credentials", "endpoints"} {
		if dump := b.text(`SELECT coalesce(string_agg(t::text, ' '), '') FROM control.` + table +
			` t`); strings.Contains(dump, "canary") {
			t.Errorf("a canary is in %s: %s", table, dump)
		}
	}
	var sealed []byte
	b.scan(&sealed, `SELECT string_agg(sealed, '') FROM control.credentials`)
	if bytes.Contains(sealed, []byte("canary")) {
		t.Error("a credential is stored in clear")
	}
	_, metrics := b.admin(b.app, "/metrics")
	if strings.Contains(b.log.String(), "canary") || strings.Contains(metrics, "canary") {
		t.Errorf("a canary is in the log or a metric: %s", b.log)
	}
}
