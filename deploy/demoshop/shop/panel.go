package shop

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"storefront.internal/deploy/demoshop/trail"
)

const (
	stateEvery = time.Second
	maxReport  = 64 << 10
)

// report is what a page says about its own storage.
type report struct {
	Signals []trail.Signal `json:"signals"` // minted
	Stored  bool           `json:"stored"`
	Removed []string       `json:"removed"`
}

func (s *Shop) minted(w http.ResponseWriter, r *http.Request) {
	var all report
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxReport)).Decode(&all); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	for _, one := range all.Signals {
		if one.SignalID != "" {
			s.trail.Minted(one, all.Stored)
		}
	}
	for _, id := range all.Removed {
		s.trail.Removed(id)
	}
	w.WriteHeader(http.StatusNoContent)
}

// event is what the panel is told: the rows that changed, and the state of everything else.
type event struct {
	Rows   []trail.Row    `json:"rows"`
	Count  trail.Count    `json:"count"`
	Faults map[string]int `json:"faults"` // by name, the seconds that are left; 0 has no end
	Queue  *queue         `json:"queue,omitempty"`
}

// queue is the part of the queue view that the panel shows.
type queue struct {
	State       string `json:"state"`
	Pending     int    `json:"pending"`
	Unconfirmed int    `json:"unconfirmed"`
}

// events sends what changes until the page closes, as server-sent events.
func (s *Shop) events(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	out := http.NewResponseController(w)
	tick := time.NewTicker(stateEvery)
	defer tick.Stop()
	for version := 0; ; {
		rows, now, count, changed := s.trail.Since(version)
		version = now
		text, err := json.Marshal(event{rows, count, s.faults(), s.queue(r.Context())})
		if err != nil {
			return
		}
		fmt.Fprintf(w, "data: %s\n\n", text)
		if out.Flush() != nil {
			return // the page is gone
		}
		select {
		case <-changed:
		case <-tick.C:
		case <-r.Context().Done():
			return
		}
	}
}

// queue is nil while control does not answer.
func (s *Shop) queue(ctx context.Context) *queue {
	ctx, cancel := context.WithTimeout(ctx, stateEvery)
	defer cancel()
	v, err := s.cfg.Control.ViewQueue(ctx)
	if err != nil {
		return nil
	}
	return &queue{v.Worker.State, v.Total.Pending, v.Total.UnconfirmedCreations}
}
