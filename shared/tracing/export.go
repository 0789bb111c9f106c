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
)

// quiet is how long the log is spared after it was told that spans cannot be sent.
const quiet = time.Minute

// exporter implements sdktrace.SpanExporter: it posts spans to a collector as OTLP in JSON. What cannot be sent is dropped; the log is
// told, with the endpoint's answer and never its text.
type exporter struct {
	url     string
	client  *http.Client
	log     *slog.Logger
	told    atomic.Int64 // when the log was told, in seconds
	dropped atomic.Int64 // since then
}

func newExporter(endpoint string, log *slog.Logger) *exporter {
	return &exporter{
		url: strings.TrimSuffix(endpoint, "/") + "/v1/traces", log: log,
		client: &http.Client{
			Timeout:       exportTime,
			Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConns: 1, IdleConnTimeout: time.Minute, TLSHandshakeTimeout: exportTime},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// ExportSpans implements sdktrace.SpanExporter. Its error is always nil: the SDK would hand one to a handler that the whole process
// shares.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if len(spans) == 0 {
		return nil
	}
	if err := e.post(ctx, spans); err != nil {
		e.tell(len(spans), err)
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
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 64<<10)) // so that the connection can be used again
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("the collector answered %d", res.StatusCode)
	}
	return nil
}

func (e *exporter) tell(spans int, err error) {
	dropped := e.dropped.Add(int64(spans))
	now, last := time.Now().Unix(), e.told.Load()
	if now-last >= int64(quiet/time.Second) && e.told.CompareAndSwap(last, now) {
		e.dropped.Add(-dropped)
		e.log.Warn("spans were not sent and are lost", slog.Int64("spans", dropped), slog.Any("error", err))
	}
}

// Shutdown implements sdktrace.SpanExporter.
func (e *exporter) Shutdown(context.Context) error {
	e.client.CloseIdleConnections()
	return nil
}
