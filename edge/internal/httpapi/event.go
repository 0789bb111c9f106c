package httpapi

import (
	"log/slog"
	"sync/atomic"

	"github.com/valyala/fasthttp"
)

// report measures the request and logs its one event: never a body, a query, a header or an address.
func (s *Server) report(x *exchange) {
	status := x.ctx.Response.StatusCode()
	took := s.now().Sub(x.began)
	s.metrics.observe(x.operation(), status, took)
	x.span.EndRequest(x.operation(), status)
	if x.code != "" {
		s.metrics.problems.WithLabelValues(x.operation(), string(x.code)).Inc()
	}
	level := slog.LevelInfo
	switch {
	case status == fasthttp.StatusServiceUnavailable: // somebody else's failure, or too much at once
		level = slog.LevelWarn
	case status >= 500:
		level = slog.LevelError
	case !s.sample.take():
		return
	}
	attrs := []slog.Attr{
		slog.String("request_id", x.requestID),
		slog.String("operation", x.operation()),
		slog.Int("status", status),
		slog.Float64("duration_ms", float64(took.Microseconds())/1000),
		slog.Int("bytes_in", len(x.ctx.Request.Body())),
	}
	if x.trace != "" {
		attrs = append(attrs, slog.String("trace_id", traceID(x.trace)))
	}
	if x.grant.KeyID != "" {
		attrs = append(attrs, slog.String("api_key_id", string(x.grant.KeyID)), slog.String("connection_id", string(x.grant.ConnectionID)))
	}
	if x.code != "" {
		attrs = append(attrs, slog.String("code", string(x.code)))
	}
	if x.cause != nil {
		attrs = append(attrs, slog.String("error", x.cause.Error()))
	}
	s.log.LogAttrs(x.call, level, "request", attrs...)
}

// sampler takes one in every; none when every is 0.
type sampler struct {
	every int
	n     atomic.Uint64
}

func (s *sampler) take() bool {
	return s.every > 0 && s.n.Add(1)%uint64(s.every) == 0
}
