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
		Seed: 42, Begun: time.Unix(1_700_000_000, 0).UTC(), Loaded: time.Minute, Faults: 3, Injected: map[string]int{"N10": 1, "N2": 2}, RedisFaults: true,
		Falls: []Fall{{"kafka", time.Second, "exit status 1"}}, Recovery: Spread([]time.Duration{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}),
		Figures: check.Figures{Signals: 10, Calls: map[string]map[string]int{"signals": {"ok": 4, "info": 1}}, StoredAfter: map[string]int{"503": 2}}, Reproducer: "make faults SEED=42",
	}
}

func TestSpread(t *testing.T) {
	t.Parallel()
	p := sample().Recovery
	if p.Count != 10 || p.P50 != 5 || p.P90 != 9 || p.P99 != 10 || p.Max != 10 || Spread(nil).Count != 0 || Spread([]time.Duration{7}).P50 != 7 {
		t.Errorf("%+v", p)
	}
}

func TestCleanAndFailed(t *testing.T) {
	t.Parallel()
	r := sample()
	var text bytes.Buffer
	r.Text(&text)
	if r.Failed() || !strings.Contains(text.String(), "clean") || !strings.Contains(text.String(), "N2 2, N10 1") {
		t.Error(text.String())
	}
	r.Findings = []check.Finding{{Invariant: "S1", Detail: "lost", Count: 3, IDs: []string{"sig_1"}}}
	text.Reset()
	r.Text(&text)
	if !r.Failed() || strings.Contains(text.String(), "clean") || !strings.Contains(text.String(), "sig_1") || !strings.Contains(text.String(), r.Reproducer) {
		t.Error(text.String())
	}
	if r = sample(); r.Failed() {
		t.Error("a clean report failed")
	}
	if r.Crashes = []string{"edge-1.log:7: panic: x"}; !r.Failed() {
		t.Error("a crash is no finding")
	}
}

func TestMarkdown(t *testing.T) {
	t.Parallel()
	r := sample()
	r.Findings = []check.Finding{{Invariant: "S3", Detail: "false duplicate", Count: 2, IDs: []string{"sig_9"}}}
	var page, object bytes.Buffer
	if err := r.Markdown(&page); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| seed | 42 |", "| N2 | SIGSTOP", "| S3 | ", " | 2 |", "not judged", "sig_9", "kafka 1", "| signals | 4 | 0 | 1 |", "- 503: 2"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("%q is not in\n%s", want, page.String())
		}
	}
	if err := r.JSON(&object); err != nil || !json.Valid(object.Bytes()) {
		t.Error(err)
	}
}

// Every kind of fault has a meaning in the report.
func TestMeanings(t *testing.T) {
	t.Parallel()
	for n := range 15 {
		if kind := "N" + string(rune('1'+n)); n < 9 && meaning(kind) == "" {
			t.Error(kind)
		}
	}
	for _, kind := range []string{"N10", "N11", "N12", "N13", "N14", "N15"} {
		if meaning(kind) == "" {
			t.Error(kind)
		}
	}
}
