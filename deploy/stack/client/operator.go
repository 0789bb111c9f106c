package client

import (
	"context"
	"net/http"
	"time"
)

// ParkedRecord is what the relay could not store.
type ParkedRecord struct {
	ParkedID          string     `json:"parked_id"`
	Reason            string     `json:"reason"`
	SQLState          string     `json:"sqlstate"`
	SignalID          string     `json:"signal_id"`
	ReplayRequestedAt *time.Time `json:"replay_requested_at"`
}

// ListParked lists the first parked records.
func (c Internal) ListParked(ctx context.Context) ([]ParkedRecord, error) {
	var out struct {
		Parked []ParkedRecord `json:"parked"`
	}
	err := c.call(ctx, http.MethodGet, "/parked?limit=500", c.ConnectorToken, nil, &out)
	return out.Parked, err
}

// ReplayParked asks the relays to store a parked record.
func (c Internal) ReplayParked(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodPost, "/parked/"+id+"/replay", c.ConnectorToken, nil, nil)
}

// DropParked gives up a parked record.
func (c Internal) DropParked(ctx context.Context, id, reason string) error {
	return c.call(ctx, http.MethodDelete, "/parked/"+id, c.ConnectorToken,
		map[string]string{"reason": reason}, nil)
}

// Quarantined is an observation that breaks a rule.
type Quarantined struct {
	ObservationID string `json:"observation_id"`
	Entity        string `json:"entity"`
	ExternalID    string `json:"external_id"`
	Reason        string `json:"reason"`
}

// ListQuarantine lists the first quarantined observations of a connection; token is one of its principal.
func (c Internal) ListQuarantine(ctx context.Context, connectionID, token string) ([]Quarantined, error) {
	var out struct {
		Quarantined []Quarantined `json:"quarantined"`
	}
	err := c.call(ctx, http.MethodGet, "/connections/"+connectionID+"/quarantine", token, nil, &out)
	return out.Quarantined, err
}

// ReplayQuarantined reads a quarantined observation again.
func (c Internal) ReplayQuarantined(ctx context.Context, connectionID, token, observationID string) error {
	return c.call(ctx, http.MethodPost, "/connections/"+connectionID+"/quarantine/"+observationID+"/replay",
		token, nil, nil)
}
