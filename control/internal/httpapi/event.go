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
	method      string
	connection  ident.ConnectionID
	identity    principal.Identity
	plainErrors bool   // the path is that of deliver_observations
	code        string // of an error answer
	err         error  // of a 5xx
	bytes       int
	began       time.Time
}

// failure is what counts as the same 5xx: each is logged failureLines times a second.
type failure struct{ operation, code string }

const failureLines = 5

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
	ev.span.EndRequest(ev.operation, status)
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
	level := slog.LevelInfo
	if ev.err != nil {
		skipped, ok := a.failures.Allow(failure{ev.operation, ev.code})
		if !ok {
			return
		}
		level = slog.LevelError
		attrs = append(attrs, slog.String("error", ev.err.Error()), telemetry.NotLogged(skipped))
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
