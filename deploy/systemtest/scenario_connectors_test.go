package systemtest

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"storefront.internal/deploy/demoengine/engine"
	"storefront.internal/deploy/fakeprovider/fake"
	"storefront.internal/deploy/stack"
	"storefront.internal/deploy/stack/client"
)

// Shops of a platform on real processes: each is installed and loaded, and then its catalog follows the
// provider, whatever happens to the webhooks. Each case has a shop of its own.
func TestConnectors(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, fake.Config{Products: 60, Orders: 3, Unthrottled: true})
	x := newDeployment(t, p.configure)
	p.deliverTo(x)
	edge := x.edge()
	x.relay()
	for name, f := range map[string]func(s *shop, edge *stack.Process){
		"a change is told": changeIsAnnounced, "webhooks are doubled": doubledWebhooks,
		"webhooks are forged": forgedWebhooks,
		"webhooks are lost":   lostWebhooks, "a deletion": deletionIsConfirmed,
		"installing again": installedAgain,
		"readme":           readmeConnectsAShop, "buyers": buyersStayPrivate,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			y := *x // the same deployment, with this test's clean-up
			y.t = t
			s := y.installShop(p)
			run := s.loaded()
			if run.Resources["product"].Read != 60 {
				t.Errorf("run %+v", run)
			}
			check(t, s.subscribed())
			f(s, edge)
			eventually(t, 20*time.Second, "the provider's truth", s.compareCatalog)
		})
	}
}

// changeIsAnnounced: a product changes and another is created; shoppers read both within seconds, and the
// engine reads the provider's bytes.
func changeIsAnnounced(s *shop, edge *stack.Process) {
	t := s.t
	check(t, s.compareCatalog())
	s.awaitItem(t, edge, s.item("1002"), "what the load brought",
		func(i itemAnswer) bool { return i.Status == http.StatusOK || gone(i) })
	s.change("1001", "Antes")
	s.announce(webhook{Topic: "product/updated", ExternalID: "1001"}, http.StatusAccepted)
	before := s.awaitItem(t, edge, s.item("1001"), "the first change", titled("Antes"))
	begun := time.Now()
	s.change("1001", "Después")
	s.announce(webhook{Topic: "product/updated", ExternalID: "1001"}, http.StatusAccepted)
	after := s.awaitItem(t, edge, s.item("1001"), "the change", titled("Después"))
	t.Logf("a change at the provider reached a reading edge after %s", time.Since(begun))
	if after.Revision <= before.Revision {
		t.Errorf("refresh_revision went from %d to %d", before.Revision, after.Revision)
	}
	s.change("9001", "Nuevo")
	s.announce(webhook{Topic: "product/created", ExternalID: "9001"}, http.StatusAccepted)
	s.awaitItem(t, edge, s.item("9001"), "the new product", titled("Nuevo"))
	eventually(t, 30*time.Second, "the engine reads", func() error {
		for _, r := range s.x.engine.Readings(0) {
			if r.ConnectionID == s.ConnectionID && r.ExternalID == "9001" && r.Result == engine.SnapshotRead {
				return nil
			}
		}
		return fmt.Errorf("it has not read product 9001")
	})
	eventually(t, 20*time.Second, "the engine recommends", func() error {
		if d := s.recommend(edge); d.Source != "engine" || d.Items[0].ItemID == "" {
			return fmt.Errorf("%+v", d)
		}
		return nil
	})
}

// doubledWebhooks: webhooks with the same body are all accepted, since each may be about another change, and
// the last change wins. Each change makes one revision at most: changes between two fetches make one
// together, a page of a load or catch-up that overlaps with a fetch does not put an older state back, and a
// load that reads what was fetched makes none.
func doubledWebhooks(s *shop, edge *stack.Process) {
	const changes, each = 5, 8
	for i := range changes {
		s.change("1001", fmt.Sprint("Cambio ", i+1))
		s.announce(webhook{Topic: "product/updated", ExternalID: "1001", Repeat: each}, http.StatusAccepted)
	}
	s.awaitItem(s.t, edge, s.item("1001"), "the last change", titled(fmt.Sprint("Cambio ", changes)))
	if n := s.deliveries(); n != changes*each {
		s.t.Errorf("%d deliveries were taken, %d were sent", n, changes*each)
	}
	if n := s.revision("1001"); n < 2 || n > changes+1 {
		s.t.Errorf("%d changes made revision %d:\n%s", changes, n, s.history("1001"))
	}
	before := s.revision("1001")
	s.loaded()
	if n := s.revision("1001"); n != before {
		s.t.Errorf("a load of what was fetched made revision %d of %d:\n%s", n, before, s.history("1001"))
	}
}

// forgedWebhooks: a webhook that the provider did not sign is refused and leaves nothing. The response is the
// same whatever is wrong.
func forgedWebhooks(s *shop, edge *stack.Process) {
	t := s.t
	s.change("1001", "Real")
	s.announce(webhook{Topic: "product/updated", ExternalID: "1001"}, http.StatusAccepted)
	s.awaitItem(t, edge, s.item("1001"), "the change", titled("Real"))
	for _, forge := range []string{"signature", "body", "missing"} {
		s.announce(webhook{Topic: "product/updated", ExternalID: "1001", Repeat: 2, Forge: forge},
			http.StatusUnauthorized)
	}
	body := []byte(`{"store_id":` + s.id + `,"event":"product/updated","id":1001}`)
	endpoint, signature := "/tiendanube/"+s.installed.EndpointID, sign(body)
	if status, text := s.deliverWebhook(endpoint, signature, body); status != http.StatusAccepted ||
		len(text) != 0 {
		t.Errorf("a sound delivery: %d %s", status, text)
	}
	foreign := []byte(`{"store_id":1,"event":"product/updated","id":1001}`)
	want := -1
	var first []byte
	for _, f := range []struct {
		path, signature string
		body            []byte
	}{
		{endpoint, sign([]byte("other")), body}, {endpoint, "", body},
		{"/tiendanube/whe_" + strings.Repeat("a", 32), signature, body},
		{"/shopify/" + s.installed.EndpointID, signature, body},
		{"/nobody/" + s.installed.EndpointID, signature, body},
		{endpoint, sign(foreign), foreign}, // our secret, another store
	} {
		status, text := s.deliverWebhook(f.path, f.signature, f.body)
		text = withoutRequestID(text)
		if want < 0 {
			want, first = status, text
		}
		if status != http.StatusUnauthorized || !bytes.Equal(text, first) {
			t.Errorf("%s: %d %s, the first was %d %s", f.path, status, text, want, first)
		}
	}
	if n := s.deliveries(); n != 2 {
		t.Errorf("%d deliveries were taken, 2 are sound", n)
	}
}

func sign(body []byte) string {
	mac := hmac.New(sha256.New, []byte(platformSecret))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

// deliverWebhook delivers one webhook to a path, with an optional topic header.
func (s *shop) deliverWebhook(path, signature string, body []byte, topic ...string) (int, []byte) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.x.api.BaseURL+
		"/internal/v1/webhooks"+path, bytes.NewReader(body))
	check(s.t, err)
	r.Header.Set("Authorization", "Bearer "+s.x.Settings.ConnectorToken)
	r.Header.Set("Content-Type", "application/octet-stream")
	if signature != "" {
		r.Header.Set("X-Provider-Signature", signature)
	}
	for _, hint := range topic {
		r.Header.Set("X-Provider-Topic", hint)
	}
	res, err := httpClient.Do(r)
	check(s.t, err)
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	check(s.t, err)
	return res.StatusCode, text
}

// lostWebhooks: the catch-up (every ten minutes, here at once) finds a change whose webhook was lost; the
// next bootstrap run finds a deletion.
func lostWebhooks(s *shop, edge *stack.Process) {
	t := s.t
	s.change("1001", "Sin aviso")
	s.change("9002", "Nacido sin aviso")
	s.catchUpNow()
	s.awaitItem(t, edge, s.item("1001"), "the change", titled("Sin aviso"))
	s.awaitItem(t, edge, s.item("9002"), "the new product", titled("Nacido sin aviso"))
	s.debug(http.MethodDelete, "products/9002", nil, nil)
	id, err := s.x.api.OpenBootstrap(t.Context(), s.ConnectionID)
	check(t, err)
	eventually(t, 20*time.Second, "the second load", func() error {
		run, err := s.x.api.ViewBootstrap(t.Context(), s.ConnectionID, id)
		if err == nil && (run.State != "completed" || run.Resources["product"].Deleted != 1) {
			err = fmt.Errorf("run %+v", run)
		}
		return err
	})
	s.awaitItem(t, edge, s.item("9002"), "the deletion", gone)
}

// deletionIsConfirmed: only the provider's own "not found" deletes a product; a webhook about the deletion of
// a product that exists changes nothing.
func deletionIsConfirmed(s *shop, edge *stack.Process) {
	t := s.t
	for _, id := range []string{"1001", "1003"} {
		s.change(id, "Queda "+id)
		s.announce(webhook{Topic: "product/updated", ExternalID: id}, http.StatusAccepted)
		s.awaitItem(t, edge, s.item(id), "the change", titled("Queda "+id))
	}
	s.announce(webhook{Topic: "product/deleted", ExternalID: "1003"}, http.StatusAccepted)
	s.debug(http.MethodDelete, "products/1001", nil, nil)
	s.announce(webhook{Topic: "product/deleted", ExternalID: "1001", Repeat: 2}, http.StatusAccepted)
	s.awaitItem(t, edge, s.item("1001"), "the deletion", gone)
	s.announce(webhook{Topic: "product/updated", ExternalID: "1001"}, http.StatusAccepted) // a late one
	s.change("1003", "Sigue")
	s.announce(webhook{Topic: "product/updated", ExternalID: "1003"}, http.StatusAccepted)
	s.awaitItem(t, edge, s.item("1003"), "the one that stays", titled("Sigue"))
	s.awaitItem(t, edge, s.item("1001"), "the deletion", gone)
	s.change("1001", "Vuelve")
	s.announce(webhook{Topic: "product/created", ExternalID: "1001"}, http.StatusAccepted)
	s.awaitItem(t, edge, s.item("1001"), "the product again", titled("Vuelve"))
}

// installedAgain: a merchant uninstalls the app, which destroys the credential, and installs it again. The
// same connection goes on with one set of subscriptions and with what changed meanwhile.
func installedAgain(s *shop, edge *stack.Process) {
	t := s.t
	again := s.install("demo-" + randomHex(8))
	if want := s.installed; again.Created || again.ConnectionID != want.ConnectionID ||
		again.EndpointID != want.EndpointID {
		t.Errorf("again: %+v, first %+v", again, want)
	}
	s.loaded()
	check(t, s.subscribed())
	s.debug(http.MethodPost, "stores", map[string]string{"state": "uninstalled"}, nil)
	s.announce(webhook{Topic: "app/uninstalled"}, http.StatusAccepted)
	s.awaitState("uninstalled")
	if n := s.x.number("SELECT count(*) FROM control.credentials WHERE connection_id = $1",
		s.ConnectionID); n != 0 {
		t.Error("the credential is still there")
	}
	s.change("1001", "Mientras tanto")
	if again = s.install("demo-" + randomHex(8)); again.Created || again.ConnectionID != s.ConnectionID {
		t.Errorf("after the uninstallation: %+v", again)
	}
	s.loaded()
	s.awaitState("active")
	check(t, s.subscribed())
	s.awaitItem(t, edge, s.item("1001"), "the change", titled("Mientras tanto"))
}

func (s *shop) awaitState(want string) {
	s.t.Helper()
	eventually(s.t, 20*time.Second, "state "+want, func() error {
		ctx, cancel := context.WithTimeout(s.t.Context(), 30*time.Second)
		defer cancel()
		var got client.ConnectionView
		got, err := s.x.api.ViewConnection(ctx, s.ConnectionID)
		if err == nil && got.State != want {
			err = fmt.Errorf("state %s", got.State)
		}
		return err
	})
}

// buyersStayPrivate: orders are stored with their buyers and appear nowhere else, whether a webhook or a
// catch-up found them or whether they are quarantined as unreadable. Logs, metrics, jobs and errors are
// checked when the deployment ends (canary_test.go).
func buyersStayPrivate(s *shop, _ *stack.Process) {
	for _, b := range providers() {
		o := s.x.installShopAt(s.p, b)
		o.loaded()
		stored := func(order, state string) func() error {
			return func() error {
				n := s.x.number(`SELECT count(*) FROM control.observations
					WHERE connection_id = $1 AND entity = 'order' AND external_id = $2 AND state = $3
					AND position($4::bytea IN raw) > 0`, o.ConnectionID, order, state, []byte(canary))
				if n == 0 {
					return fmt.Errorf("order %s of %s is not there", order, b.name)
				}
				return nil
			}
		}
		o.debug(http.MethodPut, "orders/500001", b.order(canary+"buyer", canary+"buyer@mail.example"), nil)
		o.debug(http.MethodPut, "orders/500002", b.broken, nil)
		for _, order := range []string{"500001", "500002"} {
			o.announce(webhook{Topic: b.ordered, ExternalID: order}, http.StatusAccepted)
		}
		eventually(s.t, 30*time.Second, "an order", stored("500001", "accepted"))
		eventually(s.t, 30*time.Second, "an order that cannot be read", stored("500002", "quarantined"))
		o.debug(http.MethodPut, "orders/500003", b.order(canary+"untold", canary+"untold@mail.example"), nil)
		o.catchUpNow()
		eventually(s.t, 30*time.Second, "an order without a webhook", stored("500003", "accepted"))
		n := s.x.number("SELECT count(*) FROM control.observations WHERE connection_id = $1 AND reason "+
			"LIKE '%' || $2 || '%'", o.ConnectionID, canary)
		if n != 0 {
			s.t.Errorf("%s: the quarantine's reason quotes what is wrong", b.name)
		}
	}
}

// catchUpNow starts a catch-up of the shop, which otherwise comes periodically.
func (s *shop) catchUpNow() {
	s.t.Helper()
	_, err := s.x.pool.Exec(s.t.Context(), `INSERT INTO control.river_job (kind, args, max_attempts, queue)
		VALUES ('catch_up', jsonb_build_object('connection_id', $1::text), 5, 'shop_load')`, s.ConnectionID)
	check(s.t, err)
}
