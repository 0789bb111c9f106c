package httpapi

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"storefront.internal/shared/fault"
	"storefront.internal/shared/telemetry"
	"storefront.internal/shared/tracing"
)

// eventLog decides which requests are logged. Clients cause requests, and an overloaded server refuses them
// at a great rate, so each kind of failure has a bound.
type eventLog struct {
	sample   uint64         // one in so many successful requests is logged; 0: none
	events   *atomic.Uint64 // successful requests
	failures *telemetry.Throttle[failure]
	refusals *telemetry.Throttle[failure]
	panics   *telemetry.Throttle[string] // by operation
}

// failure is what failed requests have in common of which only some are logged.
type failure struct {
	operation string
	status    int
	code      fault.Code
}

// refusalsLogged is how many requests with the same error of the client are logged in a second: so many that
// a developer who integrates a shop, or asks about single requests, finds each of them by its request_id.
const refusalsLogged = 10

func newEventLog(sample int) eventLog {
	return eventLog{sample: uint64(max(sample, 0)), events: new(atomic.Uint64),
		failures: telemetry.NewThrottle[failure](time.Second, 1),
		refusals: telemetry.NewThrottle[failure](time.Second, refusalsLogged),
		panics:   telemetry.NewThrottle[string](time.Second, 1)}
}

// allow reports whether a request is logged, and how many like it were not since the last one that was.
func (l *eventLog) allow(f failure) (skipped int, ok bool) {
	switch {
	case f.status >= fasthttp.StatusInternalServerError:
		return l.failures.Allow(f)
	case f.status >= fasthttp.StatusBadRequest:
		return l.refusals.Allow(f)
	default:
		return 0, l.sample > 0 && l.events.Add(1)%l.sample == 0
	}
}

// Loads are the loads that the edge counts by connection for /debug/top.
func Loads() []string { return []string{"accepted_signals", "refused_requests", "body_bytes"} }

// countLoad counts a refusal when it is the client's doing; an item that is not there is none.
func (s *Server) countLoad(rc *requestContext, status int) {
	refused := 0
	if status >= fasthttp.StatusBadRequest && status < fasthttp.StatusInternalServerError &&
		status != fasthttp.StatusNotFound {
		refused = 1
	}
	s.cfg.Top.Add(rc.began, string(rc.grant.ConnectionID), rc.accepted, refused, len(rc.ctx.Request.Body()))
}

// report measures the request and logs its one event, which has no body, query, header or address.
func (s *Server) report(rc *requestContext) {
	status := rc.ctx.Response.StatusCode()
	took := s.cfg.Now().Sub(rc.began)
	s.cfg.Metrics.observe(rc.operation(), status, took)
	if s.cfg.Tracing != nil {
		rc.span.EndRequest(tracing.Request{Operation: rc.operation(), Method: string(rc.ctx.Method()),
			Route: rc.path(), Status: status})
	}
	if rc.code != "" {
		s.cfg.Metrics.problems.WithLabelValues(rc.operation(), string(rc.code)).Inc()
	}
	s.countLoad(rc, status)
	skipped, ok := s.eventLog.allow(failure{rc.operation(), status, rc.code})
	if !ok {
		return
	}
	level := slog.LevelInfo
	switch {
	case status == fasthttp.StatusServiceUnavailable: // a store's failure, or overload
		level = slog.LevelWarn
	case status >= fasthttp.StatusInternalServerError:
		level = slog.LevelError
	}
	attrs := []slog.Attr{
		slog.String("request_id", rc.requestID),
		slog.String("operation", rc.operation()),
		slog.Int("status", status),
		slog.Float64("duration_ms", float64(took.Microseconds())/1000),
		slog.Int("bytes_in", len(rc.ctx.Request.Body())),
	}
	if c, ok := tracing.ParseTraceparent(rc.trace); ok {
		attrs = append(attrs, slog.String("trace_id", c.TraceID().String()))
	}
	if rc.grant.KeyID != "" {
		attrs = append(attrs, slog.String("api_key_id", string(rc.grant.KeyID)),
			slog.String("connection_id", string(rc.grant.ConnectionID)))
	}
	if rc.code != "" {
		attrs = append(attrs, slog.String("code", string(rc.code)))
	}
	if rc.cause != nil {
		attrs = append(attrs, slog.String("error", rc.cause.Error()))
	}
	s.cfg.Logger.LogAttrs(&rc.callCtx, level, "request", append(attrs, telemetry.NotLogged(skipped))...)
}
