package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"storefront.internal/control/internal/principal"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/telemetry"
	"storefront.internal/shared/tracing"
)

// event is the one log line of a request, filled while the request is served. It is an allow-list: no path,
// query or body, and no header but the two ids.
type event struct {
	requestID   string
	traceID     string
	span        tracing.Span
	operation   string
	path        string // the pattern of the route
	method      string
	connection  ident.ConnectionID
	identity    principal.Identity
	plainErrors bool   // the path is that of deliver_observations
	code        string // of an error answer
	err         error  // of a 5xx
	bytes       int
	began       time.Time
}

// outcome is what counts as alike: requests with the same operation and code, "" for a success. In a second
// so many of them are logged that single requests are found by their request_id, and the next line says how
// many are missing.
type outcome struct{ operation, code string }

const (
	failureLines = 5  // of a 5xx
	requestLines = 20 // of anything else
)

// unmatched is the operation of a request without a route.
const unmatched = "unmatched"

func (a *API) begin(r *http.Request) *event {
	now := a.cfg.Now()
	id, ok := ident.RequestID(r.Header.Get("X-Request-Id"))
	if !ok {
		_, id, _ = strings.Cut(ident.Mint("req", now), "_")
	}
	sent, span := r.Header.Get("Traceparent"), tracing.Span{}
	if a.cfg.Tracing != nil {
		span = a.cfg.Tracing.StartServer(sent)
		sent = span.Traceparent()
	}
	return &event{requestID: id, traceID: traceID(sent), span: span, operation: unmatched,
		method: knownMethod(r.Method), began: now}
}

func (a *API) end(ev *event, status int) {
	took := a.cfg.Now().Sub(ev.began)
	a.cfg.Metrics.requests.WithLabelValues(ev.operation, strconv.Itoa(status)).Observe(took.Seconds())
	ev.span.EndRequest(tracing.Request{Operation: ev.operation, Method: ev.method, Route: ev.path,
		Status: status})
	attrs := []slog.Attr{
		slog.String("request_id", ev.requestID), slog.String("operation", ev.operation),
		slog.String("method", ev.method),
		slog.Int("status", status), slog.Float64("duration_ms", float64(took.Microseconds())/1000),
		slog.Int("bytes", ev.bytes), slog.String("principal", ev.identity.Role.String()),
	}
	attrs = appendText(attrs, "provider", ev.identity.Provider)
	attrs = appendText(attrs, "connection_id", string(ev.connection))
	attrs = appendText(attrs, "trace_id", ev.traceID)
	attrs = appendText(attrs, "code", ev.code)
	level, throttle := slog.LevelInfo, a.requests
	if ev.err != nil {
		level, throttle = slog.LevelError, a.failures
		attrs = append(attrs, slog.String("error", ev.err.Error()))
	}
	skipped, ok := throttle.Allow(outcome{ev.operation, ev.code})
	if !ok {
		return
	}
	if skipped > 0 {
		attrs = append(attrs, telemetry.NotLogged(skipped))
	}
	a.cfg.Logger.LogAttrs(context.Background(), level, "request", attrs...)
}

func appendText(attrs []slog.Attr, name, value string) []slog.Attr {
	if value == "" {
		return attrs
	}
	return append(attrs, slog.String(name, value))
}

// knownMethod keeps a client's text out of the log.
func knownMethod(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete, http.MethodOptions:
		return m
	}
	return "other"
}

// traceID returns the trace id of a W3C traceparent, "" without one.
func traceID(traceparent string) string {
	parent, ok := tracing.ParseTraceparent(traceparent)
	if !ok {
		return ""
	}
	return parent.TraceID().String()
}
