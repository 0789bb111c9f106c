package tracing

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Config says where spans go.
type Config struct {
	Endpoint string  // of the collector, http://collector:4318, to which /v1/traces is added; empty: no tracing
	Ratio    float64 // of the requests that bring no decision of their own
	Service  string
	Version  string
	Logger   *slog.Logger // told when spans cannot be sent
}

// Tracing makes spans. A nil Tracing makes none and costs nothing.
type Tracing struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
}

// The bounds of what waits for the collector: spans beyond them are dropped, and nobody waits for one.
const (
	queued     = 2048
	together   = 512
	every      = 2 * time.Second
	exportTime = 10 * time.Second
)

// Open returns nil when no endpoint is configured. It does not connect.
func Open(cfg Config) *Tracing {
	if cfg.Endpoint == "" {
		return nil
	}
	return New(cfg, sdktrace.NewBatchSpanProcessor(newExporter(cfg.Endpoint, cfg.Logger), sdktrace.WithMaxQueueSize(queued),
		sdktrace.WithMaxExportBatchSize(together), sdktrace.WithBatchTimeout(every), sdktrace.WithExportTimeout(exportTime)))
}

// New returns a Tracing that hands its spans to a processor.
func New(cfg Config, to sdktrace.SpanProcessor) *Tracing {
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(to),
		sdktrace.WithSampler(linked{sdktrace.ParentBased(sdktrace.TraceIDRatioBased(cfg.Ratio))}),
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", "storefront-"+cfg.Service), attribute.String("service.version", cfg.Version))))
	return &Tracing{provider: provider, tracer: provider.Tracer("storefront")}
}

// Stop sends what is left until ctx ends.
func (t *Tracing) Stop(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.provider.Shutdown(ctx)
}

// Span is one span; the zero Span is none.
type Span struct {
	span trace.Span
	came bool // with a traceparent
}

// Server begins the span of a request that came with a W3C traceparent, or with "".
func (t *Tracing) Server(traceparent string) Span {
	if t == nil {
		return Span{}
	}
	ctx := context.Background()
	parent, came := parse(traceparent)
	if came {
		ctx = trace.ContextWithRemoteSpanContext(ctx, parent)
	}
	_, span := t.tracer.Start(ctx, "request", trace.WithSpanKind(trace.SpanKindServer))
	return Span{span: span, came: came}
}

// Traceparent is what is passed on of the span; "" of none, and of one that nobody sees, neither here nor where the request came from.
func (s Span) Traceparent() string {
	if s.span == nil || !s.came && !s.span.SpanContext().IsSampled() {
		return ""
	}
	return format(s.span.SpanContext())
}

// EndRequest ends the span of a request by its operation, which is of a closed set, and status.
func (s Span) EndRequest(operation string, status int) {
	if s.span == nil {
		return
	}
	if s.span.IsRecording() {
		s.span.SetName(operation)
		s.span.SetAttributes(attribute.String("storefront.operation", operation), attribute.Int("http.response.status_code", status))
		if status >= http.StatusInternalServerError {
			s.span.SetStatus(codes.Error, "")
		}
	}
	s.span.End()
}

// Stored writes the span of work that has ended and took up what requests brought: a child of their one trace, or one that links to
// those of several that are sampled. It is not written when none is.
func (t *Tracing) Stored(name string, began time.Time, traceparents []string) {
	if t == nil {
		return
	}
	if o := originsOf(traceparents); o.sampled() {
		_, span := t.start(context.Background(), o, name, trace.SpanKindConsumer, trace.WithTimestamp(began))
		span.End()
	}
}

// Call begins the span of a call to somebody else on behalf of requests, which stands to them as by Stored. The context carries the
// call's traceparent; without a Tracing, or when nobody is to see the call, it is that of the one trace, unchanged. The function ends it.
func (t *Tracing) Call(ctx context.Context, name string, traceparents []string) (context.Context, func(error)) {
	o := originsOf(traceparents)
	if t == nil || !o.sampled() {
		return WithTraceparent(ctx, o.only), func(error) {}
	}
	_, span := t.start(context.Background(), o, name, trace.SpanKindClient)
	return WithTraceparent(ctx, format(span.SpanContext())), func(err error) {
		if err != nil {
			span.SetStatus(codes.Error, err.Error())
		}
		span.End()
	}
}

func (t *Tracing) start(ctx context.Context, o origins, name string, kind trace.SpanKind, more ...trace.SpanStartOption) (context.Context, trace.Span) {
	if o.parent.IsValid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, o.parent)
	}
	return t.tracer.Start(ctx, name, append(more, trace.WithSpanKind(kind), trace.WithLinks(o.links...))...)
}

// linked samples what is linked to something sampled, and leaves the rest to another sampler.
type linked struct{ sdktrace.Sampler }

// ShouldSample implements sdktrace.Sampler.
func (l linked) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	for _, link := range p.Links {
		if link.SpanContext.IsSampled() {
			return sdktrace.SamplingResult{Decision: sdktrace.RecordAndSample}
		}
	}
	return l.Sampler.ShouldSample(p)
}
