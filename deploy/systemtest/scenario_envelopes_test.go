package systemtest

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"storefront.internal/deploy/democonnector/connector"
	"storefront.internal/deploy/stack"
	"storefront.internal/deploy/stack/client"
)

// The engine refuses the token: envelopes wait as interactions do, the queue view does not count them, and
// all are delivered once the token is right. The engine then reads each revision that was accepted.
func testEnvelopesWaitWhileBlocked(t *testing.T) {
	t.Parallel()
	x := newDeployment(t)
	relay := x.relay()
	s := x.newStorefront()
	x.engine.SetToken("engine-secret-2")
	results := s.deliverAccepted(product("p1", 1, "Uno"), product("p2", 1, "Dos"))
	x.awaitQueue(t, s, "blocked", 0)
	results = append(results,
		s.deliverAccepted(product("p1", 2, "Uno más"), deleted(connector.Product, "p2", 2))...)
	before := len(x.engine.Readings(0))
	x.stop(relay)
	x.Settings.EngineSecret = "engine-secret-2"
	x.relay()
	x.awaitRead(t, results...)
	x.awaitDrained(t, s)
	if n := len(x.engine.Readings(0)) - before; n < len(results) {
		t.Errorf("%d envelopes of %d", n, len(results))
	}
}

type held struct {
	ObservationID string `json:"observation_id"`
	Entity        string `json:"entity"`
	ExternalID    string `json:"external_id"`
	Revision      int64  `json:"revision"`
	Reason        string `json:"reason"`
}

// quarantine: a document that breaks a rule is quarantined and uses no revision. A replay goes through
// validation and compare-and-set again: a broken document stays, a repaired one is accepted, an overtaken one
// changes nothing.
func quarantine(x *deployment, edges []*stack.Process) {
	t, edge, s := x.t, edges[0], x.newStorefront()
	broken := product("p1", 2, "Rota")
	broken.Document = map[string]any{"item": map[string]any{"title": map[string]string{"es": "Rota"},
		"status": "broken"}, "variants": []any{
		map[string]any{"external_id": "v1"}}}
	late := broken
	late.ExternalID = "p2"
	got := s.deliver(product("p1", 1, "Uno"), broken, late)
	if got[0].Status != connector.Accepted || got[1].Status != connector.Quarantined ||
		got[2].Status != connector.Quarantined {
		t.Fatalf("results %+v", got)
	}
	if got[1].Reason != "invalid_status at /document/item/status" {
		t.Errorf("reason %q", got[1].Reason)
	}
	if list := x.listQuarantine(s); len(list) != 2 || list[0].Reason != got[1].Reason ||
		list[0].Revision != 2 {
		t.Errorf("quarantine %+v", list)
	}
	if r := x.replay(t, s, got[1].ObservationID, http.StatusAccepted); r.Status != connector.Quarantined {
		t.Errorf("replay of what is still broken: %+v", r)
	}
	// A test cannot change the rules of a binary, so it repairs the archived bytes. No service may do that:
	// the triggers of the archive are disabled for this statement.
	check(t, pgx.BeginFunc(context.Background(), x.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(context.Background(),
			`SET LOCAL session_replication_role = replica`); err != nil {
			return err
		}
		_, err := tx.Exec(context.Background(), `UPDATE control.observations
			SET raw = convert_to(replace(convert_from(raw, 'UTF8'), '"broken"', '"active"'), 'UTF8')
			WHERE state = 'quarantined' AND connection_id = $1`, s.ConnectionID)
		return err
	}))
	replayed := x.replay(t, s, got[1].ObservationID, http.StatusAccepted)
	if replayed.Status != connector.Accepted {
		t.Fatalf("replay of what is mended: %+v", replayed)
	}
	s.awaitItem(t, edge, got[0].EntityID, "the replayed product", titled("Rota"))
	x.awaitRead(t, replayed)

	overtaking := s.deliverAccepted(product("p2", 3, "Tres"))[0]
	x.replay(t, s, got[2].ObservationID, http.StatusNotFound) // an accepted revision ended its quarantine
	s.awaitItem(t, edge, overtaking.EntityID, "the newer product", titled("Tres"))
	if list := x.listQuarantine(s); len(list) != 0 {
		t.Errorf("quarantine %+v", list)
	}
	x.replay(t, s, got[1].ObservationID, http.StatusNotFound)
	if again := s.deliver(product("p1", 3, "Tres"))[0]; again.Status != connector.Accepted {
		t.Errorf("the revision behind the replayed one: %+v", again)
	}
}

func (x *deployment) listQuarantine(s *storefront) []held {
	x.t.Helper()
	var page struct {
		Quarantined []held `json:"quarantined"`
	}
	url := x.api.BaseURL + "/internal/v1/connections/" + s.ConnectionID + "/quarantine"
	check(x.t, client.Call(context.Background(), nil,
		client.Request{Method: http.MethodGet, URL: url, Token: x.api.ConnectorToken}, &page))
	return page.Quarantined
}

func (x *deployment) replay(t *testing.T, s *storefront, id string, want int) connector.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var r connector.Result
	url := x.api.BaseURL + "/internal/v1/connections/" + s.ConnectionID + "/quarantine/" + id + "/replay"
	err := client.Call(ctx, nil,
		client.Request{Method: http.MethodPost, URL: url, Token: x.api.ConnectorToken}, &r)
	var status *client.StatusError
	if got := http.StatusAccepted; errors.As(err, &status) && status.Status != want || err == nil &&
		want != got || err != nil && status == nil {
		t.Fatalf("replay: %v, want %d", err, want)
	}
	return r
}
