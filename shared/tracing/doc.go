// Package tracing owns spans: it makes them with the SDK of OpenTelemetry, exports them to a collector as
// OTLP over HTTP in JSON (ADR 13), and carries the W3C traceparent in a context.
//
// It owns the sampling and the relation of batched work to the traces of its requests. A span has an
// operation, a status and times; no attribute grows with the number of customers or holds a part of a body.
// Without an endpoint there is no Tracing: a nil one makes no spans, and the traceparent of a request is
// still passed on.
package tracing
