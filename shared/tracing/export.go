package tracing

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"storefront.internal/shared/telemetry"
)

// reportEvery bounds the log lines about lost spans.
const reportEvery = time.Minute

// exporter implements sdktrace.SpanExporter: it posts spans to a collector as OTLP in JSON. Spans that cannot
// be sent are dropped and reported in the log, with the status of the answer and never its text.
type exporter struct {
	url     string
	client  *http.Client
	log     *slog.Logger
	reports *telemetry.Throttle[struct{}]
	dropped atomic.Int64 // since the last report
}

func newExporter(endpoint string, log *slog.Logger) *exporter {
	return &exporter{
		url: strings.TrimSuffix(endpoint, "/") + "/v1/traces", log: log,
		reports: telemetry.NewThrottle[struct{}](reportEvery, 1),
		client: &http.Client{
			Timeout: exportTimeout,
			Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConns: 1,
				IdleConnTimeout: time.Minute, TLSHandshakeTimeout: exportTimeout},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// ExportSpans implements sdktrace.SpanExporter. Its error is always nil, since the SDK passes errors to a
// global handler.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if len(spans) == 0 {
		return nil
	}
	if err := e.post(ctx, spans); err != nil {
		e.reportDropped(len(spans), err)
	}
	return nil
}

func (e *exporter) post(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	var body bytes.Buffer
	zip := gzip.NewWriter(&body)
	if err := json.NewEncoder(zip).Encode(encode(spans)); err != nil {
		return err
	}
	if err := zip.Close(); err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, &body)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Content-Encoding", "gzip")
	req.Header.Set("User-Agent", "storefront")
	res, err := e.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 64<<10)) // so that the connection can be reused
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("the collector answered %d", res.StatusCode)
	}
	return nil
}

func (e *exporter) reportDropped(spans int, err error) {
	e.dropped.Add(int64(spans))
	if _, ok := e.reports.Allow(struct{}{}); ok {
		e.log.Warn("spans were not sent and are lost", slog.Int64("spans", e.dropped.Swap(0)),
			slog.Any("error", err))
	}
}

// Shutdown implements sdktrace.SpanExporter.
func (e *exporter) Shutdown(context.Context) error {
	e.client.CloseIdleConnections()
	return nil
}
