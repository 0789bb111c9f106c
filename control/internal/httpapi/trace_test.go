package httpapi

import (
	"net/http"
	"net/http/httptest"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"storefront.internal/shared/tracing"
)

// A request with a traceparent gets a span of its operation in that trace; one without is sampled by the
// ratio.
func TestTracedRequests(t *testing.T) {
	t.Parallel()
	b, spans := newBundle(t, allTokens()), tracetest.NewInMemoryExporter()
	b.api.cfg.Tracing = tracing.NewWithProcessor(tracing.Config{Service: "control"},
		sdktrace.NewSimpleSpanProcessor(spans))
	for _, trace := range []string{"", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet,
			"/internal/v1/brain-interactions/queue", http.NoBody)
		r.Header.Set("Authorization", "Bearer "+backendToken)
		r.Header.Set("Traceparent", trace)
		w := httptest.NewRecorder()
		b.api.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			t.Fatal(w.Code, w.Body)
		}
	}
	all := spans.GetSpans()
	if len(all) != 1 || all[0].Name == "request" || all[0].Parent.SpanID().String() != "b7ad6b7169203331" {
		t.Errorf("%+v", all)
	}
}
