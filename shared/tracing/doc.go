// Package tracing makes spans of OpenTelemetry's SDK, sends them to a collector, and carries W3C's traceparent with a context.
//
// It owns the sampling, how work for several requests stands to their traces, and the way to the collector: OTLP over HTTP in JSON, with
// net/http alone (ADR 13). It refuses attributes that grow with customers, and anything of a body: a span has its operation, status and
// times. Without an endpoint there is no Tracing; a nil one makes no spans and costs nothing, and what a request brings is still passed on.
package tracing
