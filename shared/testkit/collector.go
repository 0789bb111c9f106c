package testkit

import (
	"compress/gzip"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// SentSpan is a span as a collector receives it, in OTLP/JSON.
type SentSpan struct {
	Service      string `json:"-"`
	TraceID      string `json:"traceId"`
	SpanID       string `json:"spanId"`
	ParentSpanID string `json:"parentSpanId"`
	Name         string `json:"name"`
	Kind         int    `json:"kind"`
	Flags        uint32 `json:"flags"`
	Start        string `json:"startTimeUnixNano"`
	End          string `json:"endTimeUnixNano"`
	Attributes   []SpanAttribute
	Links        []struct{ TraceID, SpanID string }
	Status       struct {
		Code    int
		Message string
	}
}

// SpanAttribute is one attribute; Value has one member, named after its type.
type SpanAttribute struct {
	Key   string
	Value map[string]any
}

// Collector receives OTLP/JSON over HTTP.
type Collector struct {
	URL string

	mu     sync.Mutex
	spans  []SentSpan
	status int
}

// NewCollector starts a Collector, which ends with the test.
func NewCollector(t testing.TB) *Collector {
	t.Helper()
	c := &Collector{status: http.StatusOK}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
		r *http.Request) {
		c.take(t, w, r)
	}))
	t.Cleanup(s.Close)
	c.URL = s.URL
	return c
}

func (c *Collector) take(t testing.TB, w http.ResponseWriter, r *http.Request) {
	var in struct {
		ResourceSpans []struct {
			Resource   struct{ Attributes []SpanAttribute }
			ScopeSpans []struct{ Spans []SentSpan }
		}
	}
	body, err := gzip.NewReader(r.Body)
	if err == nil {
		err = json.NewDecoder(body).Decode(&in)
	}
	if err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1/traces" ||
		r.Header.Get("Content-Type") != "application/json" {
		t.Errorf("testkit: %s %s is not an export request: %v", r.Method, r.URL.Path, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(c.status)
	_, _ = w.Write([]byte(`{"partialSuccess":{}}`))
	if c.status != http.StatusOK {
		return
	}
	for _, resource := range in.ResourceSpans {
		service := ""
		for _, a := range resource.Resource.Attributes {
			if a.Key == "service.name" {
				service, _ = a.Value["stringValue"].(string)
			}
		}
		for _, scope := range resource.ScopeSpans {
			for _, s := range scope.Spans {
				s.Service = service
				c.spans = append(c.spans, s)
			}
		}
	}
}

// SetStatus sets the status of the following answers. Spans are kept for status 200 only.
func (c *Collector) SetStatus(status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status = status
}

// SpansNamed returns the received spans of that name.
func (c *Collector) SpansNamed(name string) (found []SentSpan) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.spans {
		if s.Name == name {
			found = append(found, s)
		}
	}
	return found
}
