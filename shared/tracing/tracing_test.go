package tracing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"storefront.internal/shared/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

const (
	sampled   = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	unsampled = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
	other     = "00-1bf7651916cd43dd8448eb211c80319c-c7ad6b7169203331-01"
)

func newTracing(ratio float64) (*Tracing, *tracetest.InMemoryExporter) {
	out := tracetest.NewInMemoryExporter()
	return NewWithProcessor(Config{Service: "edge", Ratio: ratio}, sdktrace.NewSimpleSpanProcessor(out)), out
}

func TestServerSpansKeepTheSendersDecision(t *testing.T) {
	t.Parallel()
	f := func(ratio float64, sent string, spans int, flags string) {
		t.Helper()
		tracing, out := newTracing(ratio)
		span := tracing.StartServer(sent)
		passed := span.Traceparent()
		span.EndRequest(Request{Operation: "recordStorefrontSignals", Status: 202})
		if got := len(out.GetSpans()); got != spans || !strings.HasSuffix(passed, flags) || flags == "" &&
			passed != "" {
			t.Errorf("ratio %v, %q: %d spans, passed on %q", ratio, sent, got, passed)
		}
		if _, ok := ParseTraceparent(passed); passed != "" && !ok {
			t.Errorf("%q is no traceparent", passed)
		}
		if sent == sampled &&
			(passed[:36] != sampled[:36] || passed == sampled ||
				out.GetSpans()[0].Parent.SpanID().String() != sampled[36:52]) {
			t.Errorf("%q does not go on from %q", passed, sent)
		}
	}
	f(0, "", 0, "") // unsampled and without a parent: not passed on
	f(1, "", 1, "-01")
	f(0, sampled, 1, "-01")
	f(1, unsampled, 0, "-00")
	f(1, "rubbish", 1, "-01")
	f(0, "rubbish", 0, "")
}

// A stranger's traceparent is continued, and whether it is sampled is ours to decide.
func TestStrangersDoNotDecideWhatIsSampled(t *testing.T) {
	t.Parallel()
	for _, sent := range []string{sampled, unsampled} {
		for ratio, flags := range map[float64]string{0: "-00", 1: "-01"} {
			tracing, out := newTracing(ratio)
			span := tracing.StartPublic(sent)
			passed := span.Traceparent()
			span.EndRequest(Request{Operation: "recordStorefrontSignals", Status: 202})
			if got := len(out.GetSpans()); got != int(ratio) || passed[:36] != sent[:36] ||
				!strings.HasSuffix(passed, flags) {
				t.Errorf("ratio %v, %q: %d spans, passed on %q", ratio, sent, got, passed)
			}
		}
		if got := Unsampled(sent); got[:53] != sent[:53] || !strings.HasSuffix(got, "-00") {
			t.Errorf("%q without the flag: %q", sent, got)
		}
	}
	if Unsampled("rubbish") != "" {
		t.Error("rubbish is passed on")
	}
}

func TestRequestSpanHasOperationAndStatus(t *testing.T) {
	t.Parallel()
	tracing, out := newTracing(1)
	tracing.StartServer("").EndRequest(Request{Operation: "getHealth", Status: 503})
	if s := out.GetSpans()[0]; s.Name != "getHealth" || s.Status.Code != codes.Error {
		t.Errorf("%+v", s)
	}
}

// Work for one trace continues it; work for several traces links to the sampled ones.
func TestWorkForOneAndForSeveralTraces(t *testing.T) {
	t.Parallel()
	tracing, out := newTracing(0)
	began := time.Now().Add(-time.Second)
	tracing.RecordConsumer("one", began, []string{sampled, sampled, "", "rubbish"})
	tracing.RecordConsumer("several", began, []string{sampled, unsampled, other, sampled})
	tracing.RecordConsumer("unsampled", began, []string{unsampled, ""})
	tracing.RecordConsumer("nothing", began, nil)
	ctx, end := tracing.StartClient(t.Context(), "call", "", []string{sampled})
	end(errors.New("5xx"))
	spans := out.GetSpans()
	if len(spans) != 3 {
		t.Fatalf("%+v", spans)
	}
	one, several, call := spans[0], spans[1], spans[2]
	if one.SpanContext.TraceID().String() != sampled[3:35] ||
		one.Parent.SpanID().String() != sampled[36:52] || len(one.Links) != 0 || !one.StartTime.Equal(began) {
		t.Errorf("%+v", one)
	}
	if several.Parent.IsValid() || len(several.Links) != 2 ||
		several.SpanContext.TraceID() == one.SpanContext.TraceID() {
		t.Errorf("%+v", several)
	}
	passed := TraceparentOf(ctx)
	if passed != format(call.SpanContext) || passed[:36] != sampled[:36] ||
		call.Status.Code != codes.Error || call.Status.Description != "5xx" {
		t.Errorf("passed on %q by %+v", passed, call)
	}
}

// Without a sampled trace the traceparent of a single trace is passed on unchanged, and none of several.
func TestTraceparentsArePassedOnWithoutTracing(t *testing.T) {
	t.Parallel()
	none := New(Config{})
	if none != nil {
		t.Fatal("tracing without an endpoint")
	}
	on, out := newTracing(1)
	for _, tracing := range []*Tracing{none, on} {
		for want, sent := range map[string][]string{unsampled: {unsampled, unsampled},
			"": {unsampled, strings.Replace(unsampled, "0a", "1a", 1)}} {
			ctx, end := tracing.StartClient(t.Context(), "call", "", sent)
			end(nil)
			if got := TraceparentOf(ctx); got != want {
				t.Errorf("%q: passed on %q, want %q", sent, got, want)
			}
		}
	}
	ctx, end := none.StartClient(t.Context(), "call", "", []string{sampled})
	end(nil)
	span := none.StartServer(sampled)
	span.EndRequest(Request{Operation: "x", Status: 500})
	none.RecordConsumer("x", time.Now(), []string{sampled})
	if TraceparentOf(ctx) != sampled || span.Traceparent() != "" || none.Stop(context.Background()) != nil ||
		len(out.GetSpans()) != 0 {
		t.Error("there is something")
	}
}

// TestOffCostsNothing: no allocation without an endpoint and without a traceparent.
func TestOffCostsNothing(t *testing.T) {
	var none *Tracing
	ctx := t.Context()
	if n := testing.AllocsPerRun(100, func() {
		span := none.StartServer("")
		if span.Traceparent() != "" || TraceparentOf(WithTraceparent(ctx, span.Traceparent())) != "" {
			t.Error("there is something")
		}
		span.EndRequest(Request{Operation: "recordStorefrontSignals", Status: 202})
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzTraceparent(f *testing.F) {
	for _, s := range []string{sampled, unsampled, "", "rubbish", strings.Replace(sampled, "-01", "-ff", 1),
		strings.ToUpper(sampled)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c, ok := ParseTraceparent(s)
		if !ok {
			return
		}
		again, ok := ParseTraceparent(format(c))
		if !ok || again.TraceID() != c.TraceID() || again.SpanID() != c.SpanID() ||
			again.IsSampled() != c.IsSampled() {
			t.Errorf("%q became %q", s, format(c))
		}
	})
}

// TestResource is not parallel, since it sets the environment.
func TestResource(t *testing.T) {
	log := &testkit.Log{}
	resource := func(environment string) string {
		t.Setenv("OTEL_RESOURCE_ATTRIBUTES", environment)
		cfg := Config{Service: "edge", Version: "1.2.3", Logger: slog.New(slog.NewTextHandler(log, nil))}
		return cfg.resource().Encoded(attribute.DefaultEncoder())
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	if got := resource(""); got != "service.instance.id="+host+
		",service.name=storefront-edge,service.version=1.2.3" {
		t.Error(got)
	}
	if got := resource("k8s.pod.name=edge-1,service.name=shop"); got != "k8s.pod.name=edge-1,"+
		"service.instance.id="+host+",service.name=shop,service.version=1.2.3" {
		t.Error(got)
	}
	if log.String() != "" {
		t.Error(log)
	}
	if got := resource("rubbish"); !strings.Contains(got, "service.name=storefront-edge") ||
		!strings.Contains(log.String(), "OTEL_RESOURCE_ATTRIBUTES is malformed") {
		t.Error(got, log)
	}
}

func TestAStrangersMethodIsNotRecorded(t *testing.T) {
	t.Parallel()
	tracing, out := newTracing(1)
	tracing.StartServer("").EndRequest(Request{Operation: "unknown", Method: "ana@example.com", Status: 404})
	if got := fmt.Sprint(out.GetSpans()[0].Attributes); strings.Contains(got, "ana") ||
		!strings.Contains(got, "_OTHER") {
		t.Error(got)
	}
}
