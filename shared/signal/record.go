package signal

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"storefront.internal/shared/ident"
)

// schema is the version of both records. A reader reads every version up to its own. A newer one is
// ErrUnknownSchema: the record is for the next release, and not malformed.
const schema = 1

// ErrUnknownSchema says that a record is of a newer version than this build reads.
var ErrUnknownSchema = errors.New("signal: record of an unknown schema version")

// Record carries the accepted signals of one request, of which all are stored or none.
type Record struct {
	RecordID     string             `json:"record_id"` // UUID, new for each attempt to record
	ConnectionID ident.ConnectionID `json:"connection_id"`
	StoreID      ident.StoreID      `json:"store_id"`
	ReceivedAt   time.Time          `json:"received_at"`
	Audit        Audit              `json:"audit"`
	Signals      []Recorded         `json:"signals"`
}

// Recorded is a signal and its position in the request.
type Recorded struct {
	Index int `json:"index"`
	Signal
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

// DecodeRecord reads a record. It returns ErrUnknownSchema for a newer version, and another error for a
// malformed record. The record may alias b, which must not change.
func DecodeRecord(b []byte) (*Record, error) {
	r, err := decodeRecord(b)
	if err != nil {
		return nil, err
	}
	if r.RecordID == "" || r.ConnectionID == "" || r.ReceivedAt.IsZero() || len(r.Signals) == 0 {
		return nil, errors.New("signal: record without id, connection, time or signals")
	}
	r.ReceivedAt = r.ReceivedAt.UTC()
	for i := range r.Signals {
		r.Signals[i].OccurredAt = r.Signals[i].OccurredAt.UTC()
	}
	return r, nil
}

func decodeRecord(b []byte) (*Record, error) {
	if r, ok := newReader(b).readRecord(); ok {
		return &r, nil
	}
	return unmarshalRecord(b)
}

// unmarshalRecord reads any form of a record.
func unmarshalRecord(b []byte) (*Record, error) {
	var in struct {
		Schema int `json:"schema"`
		Record
	}
	err := decode(b, &in, &in.Schema)
	return &in.Record, err
}

// decode reads the form of this build's version, and distinguishes a newer version from a malformed record.
func decode(b []byte, into any, version *int) error {
	err := json.Unmarshal(b, into)
	if err != nil {
		var head struct {
			Schema int `json:"schema"`
		}
		if json.Unmarshal(b, &head) == nil && head.Schema > schema {
			return ErrUnknownSchema
		}
		return fmt.Errorf("signal: malformed record: %w", err)
	}
	switch {
	case *version > schema:
		return ErrUnknownSchema
	case *version < 1:
		return errors.New("signal: malformed record: schema is missing")
	}
	return nil
}
