package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"storefront.internal/deploy/faults/check"
)

func sample() *Report {
	return &Report{
		Seed: 42, Begun: time.Unix(1_700_000_000,
			0).UTC(), Loaded: time.Minute, Faults: 3, Injected: map[string]int{"N10": 1, "N2": 2},
		RedisFaults: true, Exits: []Exit{{"kafka", time.Second,
			"exit status 1"}}, Reproducer: "make faults SEED=42",
		Recovery: check.Percentiles{Count: 4, P50: time.Second, Max: 2 * time.Second},
		Figures: check.Figures{Signals: 10, Calls: map[string]map[string]int{"signals": {"ok": 4, "info": 1}},
			StoredAfter: map[string]int{"503": 2}},
	}
}

func markdown(t *testing.T, r *Report) string {
	t.Helper()
	var text bytes.Buffer
	if err := r.Markdown(&text); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

func TestReportWithoutFindings(t *testing.T) {
	t.Parallel()
	r := sample()
	text := markdown(t, r)
	for _, want := range []string{"| seed | 42 |", "| findings | 0 |", "| N2 | SIGSTOP", "not checked",
		"kafka exited 1 times",
		"| signals | 4 | 0 | 1 |", "2 signals were stored", "| 4 | 1s | 0s | 0s | 2s |"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if r.Failed() || strings.Index(text, "| N2 |") > strings.Index(text, "| N10 |") {
		t.Error(text)
	}
}

func TestReportWithFindings(t *testing.T) {
	t.Parallel()
	r := sample()
	r.Findings = []check.Finding{{Invariant: "S3", Detail: "false duplicate", Count: 2,
		IDs: []string{"sig_9"}}}
	text := markdown(t, r)
	for _, want := range []string{"| S3 | ", " | 2 |", "false duplicate", "sig_9", r.Reproducer} {
		if !r.Failed() || !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	var object bytes.Buffer
	if err := r.JSON(&object); err != nil || !json.Valid(object.Bytes()) {
		t.Error(err)
	}
	r = sample()
	if r.Crashes = []string{"edge-1.log:7: panic: x"}; !r.Failed() ||
		!strings.Contains(markdown(t, r), "panic: x") {
		t.Error("a crash does not fail the run")
	}
}
