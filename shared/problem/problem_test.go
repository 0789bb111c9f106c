package problem

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"storefront.internal/shared/fault"
)

func TestBuild(t *testing.T) {
	b := New("https://errors.example/")
	f := func(err error, wantStatus int, want string) {
		t.Helper()
		status, body := b.Build(err, "req-1")
		if status != wantStatus || string(body) != want {
			t.Errorf("Build(%v) = %d %s\nwant %d %s", err, status, body, wantStatus, want)
		}
	}
	f(fault.New(fault.NotFound, "No such item."), 404,
		`{"type":"https://errors.example/not-found","title":"Resource not found","status":404,"detail":"No `+
			`such item.","code":"not_found","request_id":"req-1"}`)
	f(fmt.Errorf("deep: %w", fault.Invalid("/signals", "required", "signals is missing")), 400,
		`{"type":"https://errors.example/invalid-request","title":"Invalid request","status":400,`+
			`"detail":"signals is missing","code":"invalid_request","request_id":"req-1",`+
			`"errors":[{"code":"required","detail":"signals is missing","pointer":"/signals"}]}`)
	f(fault.New(fault.InvalidRequest, "No JSON."), 400,
		`{"type":"https://errors.example/invalid-request","title":"Invalid request","status":400,`+
			`"detail":"No JSON.","code":"invalid_request","request_id":"req-1","errors":[]}`)
	f(&fault.Error{Code: fault.SignalBatchLimitExceeded, Detail: "Too many.",
		Extra: map[string]any{"max_signals_per_batch": 50, "actual_signals": 51}}, 422,
		`{"type":"https://errors.example/signal-batch-limit-exceeded","title":"Signal batch limit `+
			`exceeded","status":422,"detail":"Too many.","code":"signal_batch_limit_exceeded",`+
			`"request_id":"req-1","actual_signals":51,"max_signals_per_batch":50}`)
}

func TestA500SaysNothing(t *testing.T) {
	b := New("https://errors.example/")
	for _, err := range []error{errors.New("dial tcp: secret"), fault.New("no_such_code", "secret"),
		fault.Wrap(fault.InternalError, "secret", errors.New("secret"))} {
		status, body := b.Build(err, "r")
		if status != 500 || strings.Contains(string(body), "secret") {
			t.Errorf("Build(%v) = %d %s", err, status, body)
		}
	}
}

func TestEveryEntryIsAProblem(t *testing.T) {
	b := New("https://errors.example/")
	for _, e := range Entries() {
		status, body := b.Build(fault.New(e.Code, ""), "r")
		var p map[string]any
		if err := json.Unmarshal(body, &p); err != nil {
			t.Fatalf("%s: %v", e.Code, err)
		}
		if status != e.Status || p["code"] != string(e.Code) || p["type"] != "https://errors.example/"+
			e.Slug() || p["detail"] == "" {
			t.Errorf("%s: %d %s", e.Code, status, body)
		}
	}
}

// Each problem has a heading, which is the end of its type, with its status and title below, and no other
// has.
func TestThePageHasEveryProblem(t *testing.T) {
	page, err := os.ReadFile("ERRORS.md")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Count(string(page), "\n## "), len(Entries()); got != want {
		t.Errorf("%d headings for %d problems", got, want)
	}
	for _, e := range Entries() {
		want := fmt.Sprintf("\n## %s\n\n%d %s. ", e.Slug(), e.Status, e.Title)
		if !strings.Contains(string(page), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}
