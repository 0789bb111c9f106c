package signal

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"storefront.internal/shared/ident"
)

// schema is the version of both records. A reader takes every version up to its own and refuses a newer one with
// ErrUnknownSchema: the record is for the next release, not broken.
const schema = 1

// ErrUnknownSchema says that a record is of a newer version than this build reads.
var ErrUnknownSchema = errors.New("signal: record of an unknown schema version")

// Record carries what one request brought: all its accepted signals, stored whole or not at all.
type Record struct {
	RecordID     string // UUID, minted per hand-off
	ConnectionID ident.ConnectionID
	StoreID      ident.StoreID
	ReceivedAt   time.Time
	Audit        Audit
	Signals      []Recorded
}

// Recorded is a signal and its position in the request.
type Recorded struct {
	Index  int
	Signal Signal
}

// AppendRecord appends the record as JSON.
func AppendRecord(dst []byte, r *Record) []byte {
	dst = append(dst, `{"schema":1`...)
	dst = appendMember(dst, "record_id", r.RecordID)
	dst = appendMember(dst, "connection_id", string(r.ConnectionID))
	dst = appendMember(dst, "store_id", string(r.StoreID))
	dst = appendTime(dst, "received_at", r.ReceivedAt)
	dst = appendAudit(dst, &r.Audit)
	dst = append(appendName(dst, "signals"), '[')
	for i := range r.Signals {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendRecorded(dst, &r.Signals[i])
	}
	return append(dst, "]}"...)
}

func appendAudit(dst []byte, a *Audit) []byte {
	dst = append(appendName(dst, "audit"), '{')
	dst = appendMember(dst, "ip", a.IP)
	dst = appendMember(dst, "user_agent", a.UserAgent)
	dst = appendMember(dst, "accept_language", a.AcceptLanguage)
	dst = appendMember(dst, "origin", a.Origin)
	dst = appendMember(dst, "referer", a.Referer)
	if a.Crawler {
		dst = append(appendName(dst, "crawler"), "true"...)
	}
	return append(dst, '}')
}

func appendRecorded(dst []byte, r *Recorded) []byte {
	dst = append(dst, `{"index":`...)
	dst = strconv.AppendInt(dst, int64(r.Index), 10)
	s := &r.Signal
	dst = appendMember(dst, "signal_id", string(s.ID))
	dst = appendMember(dst, "type", string(s.Type))
	dst = appendTime(dst, "occurred_at", s.OccurredAt)
	dst = appendMember(dst, "decision_id", string(s.DecisionID))
	dst = appendMember(dst, "item_id", string(s.ItemID))
	dst = appendMember(dst, "variant_id", string(s.VariantID))
	dst = appendNumber(dst, "position", s.Position)
	dst = appendNumber(dst, "quantity", s.Quantity)
	dst = appendMember(dst, "order_external_id", s.OrderExternalID)
	dst = appendVisitor(dst, s.Visitor)
	if s.Client != nil {
		dst = append(appendName(dst, "client"), s.Client...)
	}
	return append(dst, '}')
}

// recordJSON is the form of version 1.
type recordJSON struct {
	Schema       int                `json:"schema"`
	RecordID     string             `json:"record_id"`
	ConnectionID ident.ConnectionID `json:"connection_id"`
	StoreID      ident.StoreID      `json:"store_id"`
	ReceivedAt   time.Time          `json:"received_at"`
	Audit        auditJSON          `json:"audit"`
	Signals      []recordedJSON     `json:"signals"`
}

type auditJSON struct {
	IP             string `json:"ip"`
	UserAgent      string `json:"user_agent"`
	AcceptLanguage string `json:"accept_language"`
	Origin         string `json:"origin"`
	Referer        string `json:"referer"`
	Crawler        bool   `json:"crawler"`
}

type recordedJSON struct {
	Index           int              `json:"index"`
	SignalID        ident.SignalID   `json:"signal_id"`
	Type            Type             `json:"type"`
	OccurredAt      time.Time        `json:"occurred_at"`
	DecisionID      ident.DecisionID `json:"decision_id"`
	ItemID          ident.ItemID     `json:"item_id"`
	VariantID       ident.VariantID  `json:"variant_id"`
	Position        *int32           `json:"position"`
	Quantity        *int32           `json:"quantity"`
	OrderExternalID string           `json:"order_external_id"`
	Visitor         *Visitor         `json:"visitor"`
	Client          json.RawMessage  `json:"client"`
}

// DecodeRecord reads a record. It returns ErrUnknownSchema for a newer version, and another error for what is no
// record at all.
func DecodeRecord(b []byte) (*Record, error) {
	var in recordJSON
	if err := decode(b, &in, &in.Schema); err != nil {
		return nil, err
	}
	if in.RecordID == "" || in.ConnectionID == "" || in.ReceivedAt.IsZero() || len(in.Signals) == 0 {
		return nil, errors.New("signal: record without id, connection, time or signals")
	}
	r := &Record{RecordID: in.RecordID, ConnectionID: in.ConnectionID, StoreID: in.StoreID, ReceivedAt: in.ReceivedAt.UTC(),
		Audit: Audit(in.Audit), Signals: make([]Recorded, len(in.Signals))}
	for i := range in.Signals {
		r.Signals[i] = fromJSON(&in.Signals[i])
	}
	return r, nil
}

func fromJSON(in *recordedJSON) Recorded {
	return Recorded{Index: in.Index, Signal: Signal{ID: in.SignalID, Type: in.Type, OccurredAt: in.OccurredAt.UTC(),
		DecisionID: in.DecisionID, ItemID: in.ItemID, VariantID: in.VariantID, Position: in.Position, Quantity: in.Quantity,
		OrderExternalID: in.OrderExternalID, Visitor: in.Visitor, Client: in.Client}}
}

// decode reads the form of this build's version, and tells a newer version from what is broken.
func decode(b []byte, into any, version *int) error {
	err := json.Unmarshal(b, into)
	if err != nil {
		var head struct {
			Schema int `json:"schema"`
		}
		if json.Unmarshal(b, &head) == nil && head.Schema > schema {
			return ErrUnknownSchema
		}
		return fmt.Errorf("signal: no record: %w", err)
	}
	switch {
	case *version > schema:
		return ErrUnknownSchema
	case *version < 1:
		return errors.New("signal: no record: schema is missing")
	}
	return nil
}
