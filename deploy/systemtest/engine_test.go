package systemtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"storefront.internal/deploy/demoengine/engine"
)

// checkedEngine is the demo engine behind a real listener. It counts requests, and compares requests and
// responses with the engine's OpenAPI document.
type checkedEngine struct {
	*engine.Engine
	handler  http.Handler
	document *openapi3.T
	requests atomic.Int64 // of interactions
	pace     atomic.Int64 // interactions a second that it takes; 0: as many as come
	turn     sync.Mutex   // of a slow one

	mu     sync.Mutex
	fault  error    // the first one
	traces []string // header traceparent of each request of interactions that had one
}

func newEngine(t *testing.T, token string) (*checkedEngine, string) {
	t.Helper()
	document, err := openapi3.NewLoader().LoadFromFile(filepath.Join(shared.project.Root, "engine-relay",
		"engine.openapi.yaml"))
	check(t, err)
	d := &checkedEngine{Engine: engine.New(token, nil), document: document}
	d.handler = d.Handler()
	server := httptest.NewServer(d)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.fault != nil {
			t.Errorf("at the engine's checkedEngine: %v", d.fault)
		}
	})
	return d, server.URL
}

// ServeHTTP passes a request on and compares it, and a response of 200, with the document.
func (d *checkedEngine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := d.document.Paths.Value(r.URL.Path)
	if path == nil || path.Post == nil {
		d.handler.ServeHTTP(w, r)
		return
	}
	if r.URL.Path == "/v1/interactions" {
		d.requests.Add(1)
		d.keepTrace(r.Header.Get("Traceparent"))
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the sender is gone
	}
	d.compare("request", path.Post.RequestBody.Value.Content, r.Header.Get("Content-Type"), body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	if r.URL.Path == "/v1/interactions" {
		d.slow(bytes.Count(body, []byte(`"signal_id"`)))
	}
	answer := &copying{ResponseWriter: w, status: http.StatusOK}
	d.handler.ServeHTTP(answer, r)
	if answer.status == http.StatusOK {
		d.compare("answer", path.Post.Responses.Value("200").Value.Content, w.Header().Get("Content-Type"),
			answer.body.Bytes())
	}
}

func (d *checkedEngine) keepTrace(traceparent string) {
	if traceparent != "" {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.traces = append(d.traces, traceparent)
	}
}

func (d *checkedEngine) traceparents() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.traces)
}

// slow delays a request by the time that its interactions take; one request waits for the other.
func (d *checkedEngine) slow(interactions int) {
	if pace := d.pace.Load(); pace > 0 {
		d.turn.Lock()
		defer d.turn.Unlock()
		time.Sleep(time.Duration(interactions) * time.Second / time.Duration(pace))
	}
}

func (d *checkedEngine) compare(what string, content openapi3.Content, mediaType string, body []byte) {
	media := content.Get(mediaType)
	var value any
	err := json.Unmarshal(body, &value)
	switch {
	case media == nil:
		err = fmt.Errorf("media type %q is not in the document", mediaType)
	case err == nil:
		err = media.Schema.Value.VisitJSON(value)
	}
	if err == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fault == nil {
		d.fault = fmt.Errorf("%s %.500s: %w", what, body, err)
	}
}

type copying struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (c *copying) WriteHeader(status int) {
	c.status = status
	c.ResponseWriter.WriteHeader(status)
}

func (c *copying) Write(b []byte) (int, error) {
	c.body.Write(b)
	return c.ResponseWriter.Write(b)
}
