package telemetry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"storefront.internal/shared/settings"
)

func TestLoggerMasksCredentials(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	l := NewLogger(&out, slog.LevelInfo, "edge")
	l.Info("Bearer abc.def", "key", "x spk_AbC123 y", "token", settings.Secret("hunter2"), "error",
		fmt.Errorf("dial postgres://u:hunter2@h/d"), "group",
		slog.GroupValue(slog.String("h", "authorization: bearer hunter2")))
	l.Debug("hidden")
	got := out.String()
	for _, leak := range []string{"abc.def", "spk_A", "hunter2", "hidden"} {
		if strings.Contains(got, leak) {
			t.Errorf("%q in %s", leak, got)
		}
	}
	if !strings.Contains(got, `"service":"edge"`) || !strings.Contains(got, `"version"`) {
		t.Errorf("got %s", got)
	}
}

func TestMetricsReferenceNamesMetricsWithoutSamples(t *testing.T) {
	t.Parallel()
	got := MetricsReference(func(r prometheus.Registerer) {
		r.MustRegister(
			prometheus.NewCounterVec(prometheus.CounterOpts{Name: "b_total", Help: `Counts "b" | c.`},
				[]string{"outcome", "x"}),
			prometheus.NewGauge(prometheus.GaugeOpts{Name: "a_bytes", Help: "A."}),
			prometheus.NewHistogram(prometheus.HistogramOpts{Name: "c_seconds", Help: "C."}),
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "d", Help: "D."}, func() float64 { return 1 }),
			NewRegistry("edge"),
		)
	})
	want := "| Metric | Type | Labels | Meaning |\n|---|---|---|---|\n" +
		"| `a_bytes` | gauge |  | A. |\n| `b_total` | counter | `outcome`, `x` | Counts \"b\" \\| c. |\n| " +
		"`c_seconds` | histogram |  | C. |\n| `d` | gauge |  | D. |\n" +
		"| `storefront_build_info` | gauge | `component`, `version`, `go_version` | Always 1; the labels " +
		"name the service (component), its version (a tag or a commit) and the Go version that built it. |\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func newAdmin() *Admin {
	return NewAdmin(AdminConfig{Listen: "127.0.0.1:0", Gatherer: NewRegistry("edge"),
		Logger: slog.New(slog.DiscardHandler), Service: "edge"})
}

func TestAdminAnswers(t *testing.T) {
	t.Parallel()
	a := newAdmin()
	var failing error
	a.AddCheck("schema", func(context.Context) error { return failing })
	a.AddCheck("calm", func(context.Context) error { return nil })
	get := func(path string) (int, string) {
		w := httptest.NewRecorder()
		a.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w.Code, w.Body.String()
	}
	for _, path := range []string{"/livez", "/readyz", "/version", "/metrics"} {
		if code, body := get(path); code != http.StatusOK || body == "" {
			t.Errorf("%s: %d %q", path, code, body)
		}
	}
	if code, _ := get("/debug/pprof/"); code != http.StatusNotFound {
		t.Errorf("pprof without flag: %d", code)
	}
	failing = errors.New("old")
	if code, body := get("/readyz?verbose"); code != http.StatusServiceUnavailable ||
		!strings.Contains(body, "[-] schema: old") || !strings.Contains(body, "[+] calm ok") {
		t.Errorf("%d %s", code, body)
	}
	failing = nil
	a.AddCheck("mad", func(context.Context) error { panic("x") })
	if code, body := get("/readyz?verbose"); code != http.StatusServiceUnavailable ||
		!strings.Contains(body, "mad: panic: string") {
		t.Errorf("%d %s", code, body)
	}
}

func TestAdminDrainsAndStops(t *testing.T) {
	t.Parallel()
	a := newAdmin()
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	get := func() (int, error) {
		resp, err := http.Get("http://" + a.Addr() + "/readyz")
		if err != nil {
			return 0, err
		}
		defer resp.Body.Close()
		_, err = io.Copy(io.Discard, resp.Body)
		return resp.StatusCode, err
	}
	if code, err := get(); err != nil || code != http.StatusOK {
		t.Fatalf("%d %v", code, err)
	}
	a.SetDraining()
	if code, err := get(); err != nil || code != http.StatusServiceUnavailable {
		t.Fatalf("%d %v", code, err)
	}
	if err := errors.Join(a.Stop(t.Context()), a.Stop(t.Context())); err != nil {
		t.Fatal(err)
	}
	if _, err := get(); err == nil {
		t.Fatal("still answers after Stop")
	}
}
