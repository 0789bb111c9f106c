package proxy

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"
)

// answer is what came back for a batch.
type answer struct {
	status  int
	header  http.Header
	body    []byte
	outcome string // instead of a status
	err     error
}

type result struct {
	Status string `json:"status"`
	Reason string `json:"reason"`
}

func (a answer) results() []result {
	var body struct {
		Results []result `json:"results"`
	}
	if a.status == http.StatusAccepted {
		_ = json.Unmarshal(a.body, &body) // without results the status is shown
	}
	return body.Results
}

func (a answer) text() string {
	if a.outcome != "" {
		return a.outcome
	}
	return strconv.Itoa(a.status)
}

func (a answer) write(w http.ResponseWriter) {
	if a.err != nil {
		panic(http.ErrAbortHandler)
	}
	for name, values := range a.header {
		w.Header()[name] = values
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) // the page is gone when this fails
}

// writeUnavailable answers as the edge does when it cannot record.
func writeUnavailable(w http.ResponseWriter, left time.Duration) {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Expose-Headers", "Retry-After")
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	h.Set("Retry-After", strconv.Itoa(max(1, int(math.Ceil(left.Seconds())))))
	w.WriteHeader(http.StatusServiceUnavailable)
	fmt.Fprint(w, `{"type":"about:blank","title":"Signals cannot be recorded right now","status":503,`+
		`"detail":"the demo shop was told to answer this","code":"signals_unavailable","request_id":"demo"}`)
}
