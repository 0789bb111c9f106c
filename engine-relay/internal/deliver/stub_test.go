package deliver_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// stub is an engine that keeps what it received, and misbehaves as the test says.
type stub struct {
	*httptest.Server
	mu       sync.Mutex
	held     map[string]string // id → bytes as first received
	order    []string          // ids in the order of their first receipt
	copies   int               // receipts of what was held already
	changed  []string          // ids that came with other bytes
	requests int
	largest  int
	behave   func(n int, bodies []json.RawMessage) behaviour
}

// behaviour is one request's.
type behaviour struct {
	status int    // answer this and do nothing
	retry  string // Retry-After
	effect bool   // do the work all the same
	end    string // hang, reset, half, short: how the answer fails after the effect
}

func newStub(t testing.TB) *stub {
	s := &stub{held: map[string]string{}}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func (s *stub) set(f func(n int, bodies []json.RawMessage) behaviour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behave, s.requests = f, 0
}

func (s *stub) count() (requests, held int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests, len(s.held)
}

func (s *stub) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var req struct{ Interactions []json.RawMessage }
	if r.URL.Path == "/v1/observations" {
		err = json.Unmarshal(body, &req.Interactions)
	} else {
		err = json.Unmarshal(body, &req)
	}
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	b, results := s.receive(req.Interactions)
	switch {
	case b.end == "hang":
		<-r.Context().Done()
		return
	case b.end == "reset":
		c, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_ = c.(*net.TCPConn).SetLinger(0)
			c.Close()
		}
		return
	case b.status != 0:
		if b.retry != "" {
			w.Header().Set("Retry-After", b.retry)
		}
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(b.status)
	case r.URL.Path == "/v1/observations":
		w.WriteHeader(http.StatusAccepted)
	default:
		out, _ := json.Marshal(map[string]any{"results": results})
		if b.end == "half" {
			out = out[:len(out)/2]
		}
		_, _ = w.Write(out)
	}
}

// receive does the request's work and says how to answer.
func (s *stub) receive(bodies []json.RawMessage) (behaviour, []map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	s.largest = max(s.largest, len(bodies))
	var b behaviour
	if s.behave != nil {
		b = s.behave(s.requests, bodies)
	}
	results := []map[string]any{}
	if b.status != 0 && !b.effect {
		return b, results
	}
	for i, body := range bodies {
		status := "created"
		var x struct {
			ConnectionID string `json:"connection_id"`
			SignalID     string `json:"signal_id"`
		}
		_ = json.Unmarshal(body, &x)
		id := fmt.Sprint(x.ConnectionID, "/", x.SignalID)
		if first, ok := s.held[id]; ok {
			status = "exists"
			s.copies++
			if first != string(body) {
				s.changed = append(s.changed, id)
			}
		} else {
			s.held[id] = string(body)
			s.order = append(s.order, id)
		}
		if b.end == "short" && i%2 == 1 {
			continue
		}
		results = append(results, map[string]any{"index": i, "status": status})
	}
	return b, results
}
