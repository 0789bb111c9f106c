package postgres_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"storefront.internal/control/internal/provider"
	shops "storefront.internal/control/internal/shop"
	"storefront.internal/control/internal/webhook"
	"storefront.internal/shared/fault"
)

func TestWebhooksThatAreRefusedAreAlike(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	body := event(provider.Changed, "p")
	for name, change := range map[string]func(*webhook.Request){
		"unknown endpoint": func(r *webhook.Request) { r.EndpointID = "whe_2" },
		"an endpoint of any text": func(r *webhook.Request) {
			r.EndpointID = "\xff\x00%2f" +
				strings.Repeat("x", 5000)
		},
		"wrong provider":    func(r *webhook.Request) { r.Provider = "shopify" },
		"another principal": func(r *webhook.Request) { r.Caller = "shopify" },
		"both of another":   func(r *webhook.Request) { r.Provider, r.Caller = "shopify", "shopify" },
		"no signature":      func(r *webhook.Request) { r.Signature = "" },
		"a byte more":       func(r *webhook.Request) { r.Body = append(r.Body, '\n') },
		"another byte":      func(r *webhook.Request) { r.Body[0] = ' ' },
		"signed by the stand-in": func(r *webhook.Request) {
			r.Signature = signWith("no endpoint has this secret", body)
		},
		"stand-in, no endpoint": func(r *webhook.Request) {
			r.EndpointID, r.Signature = "whe_2", signWith("no endpoint has this secret", body)
		},
		"of another store": func(r *webhook.Request) {
			r.Body = []byte(`{"store":"124","event":"changed","id":"p"}`)
			r.Signature = sign(string(r.Body))
		},
		"a ping for another principal": func(r *webhook.Request) {
			r.Body, r.Signature,
				r.Caller = []byte("webhook_id=7"), "", "shopify"
		},
	} {
		r := m.request(body)
		change(r)
		_, err := m.hooks.Receive(t.Context(), r)
		if f := fault.From(err); err == nil || f.Code != fault.Unauthorized || f.Detail != "" ||
			f.Fields != nil || f.Err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := scan[int](m.shop, `SELECT count(*) FROM control.webhook_deliveries`); n != 0 {
		t.Errorf("%d deliveries are archived", n)
	}
	r := m.request("webhook_id=7")
	r.Signature = ""
	if ping, err := m.hooks.Receive(t.Context(), r); !ping || err != nil {
		t.Errorf("ping: %v, %v", ping, err)
	}
	upper := m.request(body)
	upper.Signature = strings.ToUpper(upper.Signature)
	upper.Topic, upper.ProviderEventID, upper.TriggeredAt = "t\xff\x00", strings.Repeat("ä", 300), "2026"
	if ping, err := m.hooks.Receive(t.Context(), upper); ping || err != nil {
		t.Errorf("upper case: %v, %v", ping, err)
	}
	if n := scan[int](m.shop,
		`SELECT count(*) FROM control.webhook_deliveries WHERE raw = $1 AND topic_hint = $2`, []byte(body),
		"t\ufffd\ufffd"); n != 1 {
		t.Errorf("%d deliveries are archived, want 1", n)
	}
	if n := scan[int](m.shop, `SELECT count(*) FROM control.river_job`); n != 1 {
		t.Errorf("%d jobs, want 1", n)
	}
}

// TestTheSignatureVector checks the signature vector of the providers' documentation.
func TestTheSignatureVector(t *testing.T) {
	t.Parallel()
	const body = `{"store_id":123,"event":"product/updated","id":1948209}`
	if got := sign(body); got != "29e24c14593ef6c1c87d70a8888fb590b9d841ba517b03e4acf65021dfaed1dd" {
		t.Fatalf("signed %s", got)
	}
	m := newMarket(t)
	if _, err := m.hooks.Receive(t.Context(), m.request(body)); err != nil {
		t.Error(err)
	}
	for _, wrong := range []string{body + "\n", " " + body, strings.ToUpper(body)} {
		r := m.request(wrong)
		r.Signature = sign(body)
		if _, err := m.hooks.Receive(t.Context(), r); !fault.Is(err, fault.Unauthorized) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	r := m.request(body)
	r.Signature = "KeJMFFk+9sHIfXCoiI+1kLnYQbpRewPkrPZQId+u0d0="
	if _, err := m.hooks.Receive(t.Context(), r); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("base64 to the hexadecimal adapter: %v", err)
	}
}

func TestDoubledAndForgedNotificationsEndInTheTruth(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	m.platform.set("p", "true")
	var wg sync.WaitGroup
	for i := range 60 { // "deleted" is a lie, and "changed" comes again and again
		wg.Go(func() { m.notify([]provider.EventKind{provider.Changed, provider.Deleted}[i%2], "p") })
	}
	wg.Wait()
	m.notify(provider.Changed, "not there")
	m.work()
	m.settled()
	m.checkTruth()
	if n := m.platform.called("p"); n != 1 {
		t.Errorf("fetched %d times, want once: all marks were there before", n)
	}
	if n := scan[int](m.shop, `SELECT count(*) FROM control.webhook_deliveries`); n != 61 {
		t.Errorf("%d deliveries are archived, want 61", n)
	}
	if n := scan[int](m.shop, `SELECT count(*) FROM control.observations`); n != 1 {
		t.Errorf("%d observations, want 1", n)
	}
}

// TestAMarkDuringAFetchCausesAnother changes the truth and sends a webhook while the fetch that read the old
// truth runs.
func TestAMarkDuringAFetchCausesAnother(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	m.platform.set("p", "old")
	var once sync.Once
	m.platform.during = func(string) {
		once.Do(func() {
			m.platform.set("p", "new")
			m.notify(provider.Changed, "p")
		})
	}
	m.notify(provider.Changed, "p")
	m.work()
	m.settled()
	m.checkTruth()
	if n := m.platform.called("p"); n != 2 {
		t.Errorf("fetched %d times, want 2", n)
	}
}

// TestNoMarkIsLostAroundTheEndOfAJob sends webhooks without a pause, so that they meet every moment of a job,
// also its completion. The last webhook of each entity must be followed by a fetch.
func TestNoMarkIsLostAroundTheEndOfAJob(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	m.work()
	var version atomic.Int64
	var wg sync.WaitGroup
	for n := range 4 {
		wg.Go(func() {
			id := fmt.Sprint("p", n)
			for range 60 {
				m.platform.set(id, fmt.Sprint(version.Add(1)))
				m.notify(provider.Changed, id)
			}
		})
	}
	wg.Wait()
	m.settled()
	m.checkTruth()
	if n := scan[int](m.shop, `SELECT count(*) FROM control.entities WHERE dirty_seq <> clean_seq`); n != 0 {
		t.Errorf("%d entities are left dirty", n)
	}
}

// TestAMarkThatWaitsForTheLastTransactionGetsAJob holds the row as ApplyFetch does: the webhook waits, and
// the completed job does not prevent the insert of another one.
func TestAMarkThatWaitsForTheLastTransactionGetsAJob(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	m.platform.set("p", "one")
	m.notify(provider.Changed, "p")
	tx, err := m.super.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `SELECT FROM control.entities FOR NO KEY UPDATE`); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(),
		`UPDATE control.river_job SET state = 'completed', finalized_at = now() WHERE kind = 'entity_refresh'`); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.notify(provider.Changed, "p")
	}()
	for scan[int](m.shop,
		`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) == 0 {
		time.Sleep(time.Millisecond)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-done
	if n := scan[int](m.shop,
		`SELECT count(*) FROM control.river_job WHERE kind = 'entity_refresh' AND state = 'available'`); n != 1 {
		t.Errorf("%d jobs wait, want 1", n)
	}
}

func TestWhatANotificationSetsOff(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		event(provider.Changed, "p"):                      "entity_refresh",
		event(provider.Deleted, "p"):                      "entity_refresh",
		event(provider.Changed, ""):                       "catch_up",
		event(provider.Changed, strings.Repeat("x", 600)): "catch_up",
		`{"store":"123","event":"changed","id":"\u0000"}`: "catch_up",
		"no JSON \xff\x00":                                "catch_up",
		event(provider.Unspecified, ""):                   "catch_up",
		event(provider.Uninstalled, ""):                   "shop_check",
		event(provider.Suspended, ""):                     "shop_check",
		event(provider.Resumed, ""):                       "shop_check",
		event(provider.RedactCustomer, ""):                "privacy_request",
		event(provider.RedactShop, ""):                    "privacy_request",
		event(provider.DataRequest, ""):                   "privacy_request",
		event(provider.Ignored, ""):                       "",
	} {
		m := newMarket(t)
		if _, err := m.hooks.Receive(t.Context(), m.request(body)); err != nil {
			t.Errorf("%q: %v", body, err)
		}
		if got := scan[string](m.shop,
			`SELECT coalesce(string_agg(kind, ' '), '') FROM control.river_job`); got != want {
			t.Errorf("%q sets off %q, want %q", body, got, want)
		}
		if n := scan[int](m.shop, `SELECT count(*) FROM control.webhook_deliveries WHERE raw = $1`,
			[]byte(body)); n != 1 {
			t.Errorf("%q is archived %d times", body, n)
		}
	}
}

func TestAFailedFetchIsTriedAgain(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	m.platform.set("p", "x")
	var calls atomic.Int64
	m.platform.fail = func(string) error {
		switch calls.Add(1) {
		case 1:
			return &provider.Throttled{RetryAfter: 10 * time.Millisecond}
		case 2:
			return &provider.Temporary{Reason: provider.ReasonServerError, RetryAfter: 10 * time.Millisecond}
		}
		return nil
	}
	m.notify(provider.Changed, "p")
	m.work()
	m.settled()
	m.checkTruth()
}

func TestEndPauseAndReturnOfAShop(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	state := func(want shops.State, credentials int) {
		t.Helper()
		m.settled()
		got := scan[string](m.shop, `SELECT state FROM control.connections WHERE connection_id = $1`,
			m.from.ConnectionID)
		if n := scan[int](m.shop, `SELECT count(*) FROM control.credentials`); got != string(want) ||
			n != credentials {
			t.Errorf("%s with %d credentials, want %s with %d", got, n, want, credentials)
		}
	}
	says := func(err error) {
		m.platform.mu.Lock()
		defer m.platform.mu.Unlock()
		m.platform.profile = err
	}
	m.platform.set("p", "x")
	m.work()
	m.notify(provider.Uninstalled, "") // a lie: the credential still opens the shop
	m.notify(provider.Suspended, "")
	state(shops.Active, 1)
	says(&provider.ShopSuspended{Status: 402})
	m.notify(provider.Suspended, "")
	state(shops.Suspended, 1)
	m.notify(provider.Changed, "p")
	state(shops.Suspended, 1)
	if m.platform.called("p") != 0 {
		t.Error("a suspended shop was called")
	}
	says(nil)
	m.notify(provider.Resumed, "")
	state(shops.Active, 1)
	m.checkTruth() // the load that follows the return finds what was missed
	says(&provider.CredentialRefused{Status: 401})
	m.notify(provider.Suspended, "") // a refusal alone ends nothing
	state(shops.Active, 1)
	m.notify(provider.Uninstalled, "")
	state(shops.Uninstalled, 0)
	m.notify(provider.Changed, "p")
	m.notify(provider.RedactCustomer, "")
	state(shops.Uninstalled, 0)
	if m.platform.called("p") != 0 {
		t.Error("an uninstalled shop was called")
	}
}
