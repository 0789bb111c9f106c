package tracing

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Config configures a Tracing.
type Config struct {
	// base URL of the collector, such as http://collector:4318; /v1/traces is added; empty: no tracing
	Endpoint string
	Ratio    float64 // sampled share of the requests without a traceparent
	Service  string
	Version  string
	Logger   *slog.Logger // warned when spans cannot be sent
}

// Tracing makes spans. A nil Tracing makes none.
type Tracing struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	ratio    float64
}

// The limits of the export queue. Spans beyond them are dropped; no request waits for the collector.
const (
	maxQueue      = 2048
	maxBatch      = 512
	batchTimeout  = 2 * time.Second
	exportTimeout = 10 * time.Second
)

// New returns a Tracing, or nil when no endpoint is configured. It does not connect.
func New(cfg Config) *Tracing {
	if cfg.Endpoint == "" {
		return nil
	}
	return NewWithProcessor(cfg, sdktrace.NewBatchSpanProcessor(newExporter(cfg.Endpoint, cfg.Logger),
		sdktrace.WithMaxQueueSize(maxQueue),
		sdktrace.WithMaxExportBatchSize(maxBatch), sdktrace.WithBatchTimeout(batchTimeout),
		sdktrace.WithExportTimeout(exportTimeout)))
}

// NewWithProcessor returns a Tracing that passes its spans to a processor.
func NewWithProcessor(cfg Config, to sdktrace.SpanProcessor) *Tracing {
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(to),
		sdktrace.WithSampler(linkSampler{sdktrace.ParentBased(sdktrace.TraceIDRatioBased(cfg.Ratio))}),
		sdktrace.WithResource(cfg.resource()))
	return &Tracing{provider: provider, tracer: provider.Tracer("storefront"), ratio: cfg.Ratio}
}

// resource describes this process. OTEL_RESOURCE_ATTRIBUTES adds to it, such as k8s.pod.name or
// deployment.environment.name, and replaces what it names too.
func (c *Config) resource() *resource.Resource {
	attributes := []attribute.KeyValue{attribute.String("service.name", "storefront-"+c.Service),
		attribute.String("service.version", c.Version)}
	if host, err := os.Hostname(); err == nil {
		attributes = append(attributes, attribute.String("service.instance.id", host))
	}
	r, err := resource.New(context.Background(), resource.WithAttributes(attributes...),
		resource.WithFromEnv())
	if err != nil && c.Logger != nil {
		c.Logger.Warn("OTEL_RESOURCE_ATTRIBUTES is malformed; want name=value,name=value")
	}
	return r
}

// Stop exports the queued spans until ctx ends.
func (t *Tracing) Stop(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.provider.Shutdown(ctx)
}

// Span is the span of a request. The zero Span is none.
type Span struct {
	span      trace.Span
	hasParent bool // the request came with a traceparent
}

// StartServer starts the span of a request that came with the W3C traceparent, or without one.
func (t *Tracing) StartServer(traceparent string) Span {
	if t == nil {
		return Span{}
	}
	ctx := context.Background()
	parent, came := ParseTraceparent(traceparent)
	if came {
		ctx = trace.ContextWithRemoteSpanContext(ctx, parent)
	}
	_, span := t.tracer.Start(ctx, "request", trace.WithSpanKind(trace.SpanKindServer))
	return Span{span: span, hasParent: came}
}

// StartPublic starts the span of a request from the internet. It keeps the trace of its traceparent, but not
// the decision to sample it: otherwise strangers choose how much is traced. The trace id, which strangers
// choose as well, does not decide either.
func (t *Tracing) StartPublic(traceparent string) Span {
	if t == nil {
		return Span{}
	}
	if parent, came := ParseTraceparent(traceparent); came {
		parent = parent.WithTraceFlags(parent.TraceFlags().WithSampled(rand.Float64() < t.ratio))
		traceparent = format(parent)
	}
	return t.StartServer(traceparent)
}

// Unsampled returns the traceparent without the decision to sample, or "" for one that is malformed.
func Unsampled(traceparent string) string {
	parent, ok := ParseTraceparent(traceparent)
	if !ok {
		return ""
	}
	return format(parent.WithTraceFlags(parent.TraceFlags().WithSampled(false)))
}

// Traceparent returns the traceparent to pass on: "" for no span, and for an unsampled one whose request had
// no traceparent.
func (s Span) Traceparent() string {
	if s.span == nil || !s.hasParent && !s.span.SpanContext().IsSampled() {
		return ""
	}
	return format(s.span.SpanContext())
}

// Request is what a span says of a request.
type Request struct {
	Operation string // of a closed set
	Method    string
	Route     string // the path's pattern, of a closed set; empty without a route
	Status    int
}

// EndRequest ends the span of a request.
func (s Span) EndRequest(r Request) {
	if s.span == nil {
		return
	}
	if s.span.IsRecording() {
		s.span.SetName(r.Operation)
		s.span.SetAttributes(attribute.String("storefront.operation", r.Operation),
			attribute.String("http.request.method", knownMethod(r.Method)),
			attribute.Int("http.response.status_code", r.Status))
		if r.Route != "" {
			s.span.SetAttributes(attribute.String("http.route", r.Route))
		}
		if r.Status >= http.StatusInternalServerError {
			s.span.SetStatus(codes.Error, "")
		}
	}
	s.span.End()
}

// knownMethod keeps a client's text out of the trace.
func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete, http.MethodOptions:
		return method
	}
	return "_OTHER"
}

// RecordConsumer records the span of work that has ended and served the requests with these traceparents: as
// a child of their one trace, or linked to each sampled trace. Without a sampled trace it records nothing.
func (t *Tracing) RecordConsumer(name string, began time.Time, traceparents []string) {
	if t == nil {
		return
	}
	if o := linksOf(traceparents); o.sampled() {
		_, span := t.start(context.Background(), o, name, trace.SpanKindConsumer, trace.WithTimestamp(began))
		span.End()
	}
}

// StartClient starts the span of a POST to another service, by its base URL, on behalf of the requests with
// these traceparents, related to them as in RecordConsumer. The context carries the traceparent of the call;
// without a Tracing, or without a sampled trace, it carries that of the one trace unchanged. The function
// ends the span.
func (t *Tracing) StartClient(ctx context.Context, name, server string,
	traceparents []string) (context.Context, func(error)) {
	o := linksOf(traceparents)
	if t == nil || !o.sampled() {
		return WithTraceparent(ctx, o.only), func(error) {}
	}
	_, span := t.start(context.Background(), o, name, trace.SpanKindClient)
	span.SetAttributes(attribute.String("http.request.method", http.MethodPost))
	if to, err := url.Parse(server); err == nil && to.Hostname() != "" {
		span.SetAttributes(attribute.String("server.address", to.Hostname()))
	}
	return WithTraceparent(ctx, format(span.SpanContext())), func(err error) {
		if err != nil {
			span.SetStatus(codes.Error, err.Error())
		}
		span.End()
	}
}

func (t *Tracing) start(ctx context.Context, o requestTraces, name string, kind trace.SpanKind,
	more ...trace.SpanStartOption) (context.Context, trace.Span) {
	if o.parent.IsValid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, o.parent)
	}
	return t.tracer.Start(ctx, name, append(more, trace.WithSpanKind(kind), trace.WithLinks(o.links...))...)
}

// linkSampler samples spans with a sampled link and leaves the others to another sampler.
type linkSampler struct{ sdktrace.Sampler }

// ShouldSample implements sdktrace.Sampler.
func (l linkSampler) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	for _, link := range p.Links {
		if link.SpanContext.IsSampled() {
			return sdktrace.SamplingResult{Decision: sdktrace.RecordAndSample}
		}
	}
	return l.Sampler.ShouldSample(p)
}
