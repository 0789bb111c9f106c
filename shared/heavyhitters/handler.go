package heavyhitters

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

const (
	defaultKeys = 20
	mostKeys    = 100
)

// window is a window of the answer.
type window struct {
	From  time.Time `json:"from"`
	To    time.Time `json:"to"`
	Loads []Load    `json:"loads"`
}

// ServeHTTP answers GET /debug/top?n=20 with the last whole window and the present one.
func (t *Tracker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := defaultKeys
	if text := r.URL.Query().Get("n"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil || n < 1 || n > mostKeys {
			http.Error(w, "n must be 1 to 100", http.StatusBadRequest)
			return
		}
	}
	now := t.now().UTC()
	began := windowEnd(now).Add(-Window)
	present, previous := t.windows(now, n)
	w.Header().Set("Content-Type", "application/json")
	// fails only when the client is gone
	_ = json.NewEncoder(w).Encode(map[string]window{
		"last_window":    {From: began.Add(-Window), To: began, Loads: previous},
		"present_window": {From: began, To: now, Loads: present},
	})
}
