package recording

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"storefront.internal/deploy/faults/history"
	"storefront.internal/deploy/stack/client"
)

// TestHistory checks that a call and its response are in the history.
func TestHistory(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Request-Id", "req_1")
		if strings.HasPrefix(r.URL.Path, "/v1/catalog/") {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"code":"item_not_found"}`)
			return
		}
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprint(w, `{"results":[{"index":0,"signal_id":"sig_1","status":"accepted"}]}`)
	}))
	defer server.Close()
	var file bytes.Buffer
	c := Client{Recorder: history.NewRecorder(&file), Number: 7}
	edge := Endpoint{"edge-1", server.URL}
	s := Signal{Signal: client.Signal{ID: "sig_1", Type: "click", DecisionID: "dec_1",
		OccurredAt: "2026-01-01T00:00:00Z"}, Malformed: true}
	e := c.RecordSignals(t.Context(), edge, "con_1", client.Key{APIKeyID: "key_1"}, []Signal{s})
	if e.Kind != history.OK || len(e.Results) != 1 || e.Results[0].Status != "accepted" || !Final(e) {
		t.Errorf("%+v", e)
	}
	if e := c.GetItem(t.Context(), edge, "con_1", client.Key{}, "itm_1"); e.Kind != history.Fail ||
		e.Code != "item_not_found" || !Final(e) {
		t.Errorf("%+v", e)
	}
	if err := c.Recorder.Flush(); err != nil {
		t.Fatal(err)
	}
	h, err := history.Read(&file)
	events := h.Events
	if err != nil || len(events) != 4 {
		t.Fatalf("%d events, %v", len(events), err)
	}
	sent := events[0].Signals[0]
	if sent.ID != "sig_1" || sent.Type != "click" || sent.Decision != "dec_1" || !sent.Malformed ||
		sent.Canary != history.Canary("con_1", "sig_1") ||
		events[0].Client != 7 || events[0].Key != "key_1" || events[1].RequestID != "req_1" {
		t.Errorf("%+v", events[:2])
	}
}

// TestRawIsUnchanged checks that the body keeps the bytes of `raw`, which the checker compares with the
// archive.
func TestRawIsUnchanged(t *testing.T) {
	t.Parallel()
	batch := []Observation{
		{Entity: "product", ExternalID: "p1", Revision: 1, Raw: json.RawMessage(`{"as":"sent", "n":1.50}`)},
		{Entity: "product", ExternalID: "p1", Revision: 2, Operation: "delete",
			Raw: json.RawMessage(`[1, 2]`)},
	}
	var body struct{ Observations []Observation }
	if err := json.Unmarshal(encode(batch), &body); err != nil || len(body.Observations) != 2 {
		t.Fatal(err)
	}
	for i, o := range body.Observations {
		if string(o.Raw) != string(batch[i].Raw) || o.Revision != batch[i].Revision ||
			o.Operation != batch[i].Operation {
			t.Errorf("%+v, want %+v", o, batch[i])
		}
	}
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]history.Kind{202: history.OK, 304: history.OK, 401: history.Fail,
		429: history.Fail, 503: history.Info} {
		if got := outcome(client.Response{Status: status}); got != want {
			t.Errorf("%d: %s", status, got)
		}
	}
	for status, want := range map[int]bool{0: false, 202: true, 400: true, 404: true, 429: false,
		503: false} {
		if got := Final(history.Event{Status: status}); got != want {
			t.Errorf("%d is final: %v", status, got)
		}
	}
	if got := outcome(client.Response{Err: errors.New("reset")}); got != history.Info {
		t.Errorf("a reset is %s", got)
	}
}
