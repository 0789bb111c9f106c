package observation

import (
	"encoding/json"
	"fmt"
	"time"

	"storefront.internal/shared/catalog"
	"storefront.internal/shared/ident"
)

// EventType is the type of the CloudEvent that tells the engine of an accepted observation.
const EventType = "storefront.entity.observed.v1"

// ProviderCustom is the provider of custom connections. Their snapshots are canonical, those of other
// providers raw.
const ProviderCustom = "custom"

// event is a CloudEvent 1.0 as JSON. It has no content: the engine reads that from the snapshot.
type event struct {
	SpecVersion     string    `json:"specversion"`
	ID              string    `json:"id"`
	Source          string    `json:"source"`
	Type            string    `json:"type"`
	Subject         string    `json:"subject"`
	Time            time.Time `json:"time"`
	DataContentType string    `json:"datacontenttype"`
	Data            eventData `json:"data"`
}

type eventData struct {
	ObservationID ident.ObservationID `json:"observation_id"`
	ConnectionID  ident.ConnectionID  `json:"connection_id"`
	StoreID       ident.StoreID       `json:"store_id"`
	Provider      string              `json:"provider"`
	Entity        catalog.Entity      `json:"entity"`
	ExternalID    string              `json:"external_id"`
	Revision      int64               `json:"revision"`
	Operation     catalog.Operation   `json:"operation"`
	ContentDigest string              `json:"content_digest"`
	Snapshot      string              `json:"snapshot"`
}

// Envelope returns the CloudEvent of an accepted element as JSON.
func (b *Batch) Envelope(e *Element) ([]byte, error) {
	snapshot := "raw"
	if b.Source.Provider == ProviderCustom {
		snapshot = "canonical"
	}
	raw, err := json.Marshal(event{
		SpecVersion: "1.0", ID: string(e.ID), Source: "/connections/" +
			string(b.Source.ConnectionID), Type: EventType,
		Subject:         e.Entity.ID(b.Source.ConnectionID, e.ExternalID),
		Time:            b.At.UTC().Truncate(time.Microsecond),
		DataContentType: "application/json",
		Data: eventData{
			ObservationID: e.ID, ConnectionID: b.Source.ConnectionID, StoreID: b.Source.StoreID,
			Provider: b.Source.Provider,
			Entity:   e.Entity, ExternalID: e.ExternalID, Revision: e.Revision, Operation: e.Operation,
			ContentDigest: e.Digest, Snapshot: snapshot,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("envelope: %w", err)
	}
	return raw, nil
}

// LaneKey identifies the entity: the queue keeps the order of envelopes with the same key.
func (b *Batch) LaneKey(e *Element) string {
	return string(b.Source.ConnectionID) + "|" + string(e.Entity) + "|" + e.ExternalID
}
