package tracing

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"storefront.internal/shared/testkit"
)

func TestSpansReachACollector(t *testing.T) {
	t.Parallel()
	c, log := testkit.NewCollector(t), &testkit.Log{}
	tracing := New(Config{Endpoint: c.URL + "/", Ratio: 1, Service: "edge", Version: "1.2.3",
		Logger: slog.New(slog.NewTextHandler(log, nil))})
	began := time.Now()
	span := tracing.StartServer(sampled)
	span.EndRequest(Request{Operation: "recordStorefrontSignals", Method: "POST", Route: "/v1/signals",
		Status: 503})
	tracing.RecordConsumer("store signals", began, []string{sampled, other})
	_, end := tracing.StartClient(t.Context(), "deliver interactions", "https://engine.example:8000/v1",
		[]string{sampled})
	end(errors.New("5xx"))
	if err := tracing.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	request, store, call := c.SpansNamed("recordStorefrontSignals"), c.SpansNamed("store signals"),
		c.SpansNamed("deliver interactions")
	if len(request) != 1 || len(store) != 1 || len(call) != 1 {
		t.Fatalf("%v, %v, %v; log: %s", request, store, call, log)
	}
	r := request[0]
	if r.TraceID != sampled[3:35] || r.ParentSpanID != sampled[36:52] ||
		r.SpanID != span.Traceparent()[36:52] || r.Kind != 2 || r.Flags != 0x301 || r.Status.Code != 2 ||
		r.Service != "storefront-edge" {
		t.Errorf("%+v", r)
	}
	if got := fmt.Sprint(r.Attributes); got != "[{storefront.operation "+
		"map[stringValue:recordStorefrontSignals]} "+
		"{http.request.method map[stringValue:POST]} {http.response.status_code map[intValue:503]} "+
		"{http.route map[stringValue:/v1/signals]}]" {
		t.Error(got)
	}
	if r.Start > r.End || len(r.Start) != 19 {
		t.Errorf("from %s to %s", r.Start, r.End)
	}
	s := store[0]
	if s.Kind != 5 || s.ParentSpanID != "" || len(s.Links) != 2 || s.Links[0].TraceID != sampled[3:35] ||
		s.Links[1].SpanID != other[36:52] || s.Status.Code != 0 {
		t.Errorf("%+v", s)
	}
	if call[0].Kind != 3 || call[0].TraceID != sampled[3:35] || call[0].Status.Message != "5xx" ||
		fmt.Sprint(call[0].Attributes) != "[{http.request.method map[stringValue:POST]} "+
			"{server.address map[stringValue:engine.example]}]" {
		t.Errorf("%+v", call[0])
	}
}

// While a collector answers with errors, its spans are lost and reported once; later spans arrive.
func TestCollectorErrors(t *testing.T) {
	t.Parallel()
	c, log := testkit.NewCollector(t), &testkit.Log{}
	c.SetStatus(http.StatusServiceUnavailable)
	tracing := New(Config{Endpoint: c.URL, Ratio: 1, Logger: slog.New(slog.NewTextHandler(log, nil))})
	for range 3 {
		tracing.StartServer("").EndRequest(Request{Operation: "lost", Status: 200})
		if err := tracing.provider.ForceFlush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	c.SetStatus(http.StatusOK)
	tracing.StartServer("").EndRequest(Request{Operation: "kept", Status: 200})
	if err := tracing.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(c.SpansNamed("lost")) != 0 || len(c.SpansNamed("kept")) != 1 {
		t.Errorf("%v, %v", c.SpansNamed("lost"), c.SpansNamed("kept"))
	}
	if text := log.String(); strings.Count(text, "spans were not sent") != 1 ||
		!strings.Contains(text, "answered 503") {
		t.Error(text)
	}
}
