package signal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"storefront.internal/shared/ident"
)

// The newest versions that this build reads. A reader reads every version up to its own. A newer one is
// ErrUnknownSchema: the record is for the next release, and not malformed.
const (
	newestRecord   = 2
	newestDecision = 1
)

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

// AppendRecord appends the record as JSON, in version 1.
func AppendRecord(dst []byte, r *Record) []byte {
	dst = appendHead(append(dst, `{"schema":1`...), r)
	for i := range r.Signals {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendIndex(dst, &r.Signals[i])
		dst = append(appendSignal(dst, &r.Signals[i].Signal, true), '}')
	}
	return append(dst, "]}"...)
}

// AppendCompact appends the record as JSON, in version 2. A signal with the same Decision, visitor and client
// as an earlier one has "like", the position of that one in signals, instead of these three members.
func AppendCompact(dst []byte, r *Record) []byte {
	dst = appendHead(append(dst, `{"schema":2`...), r)
	var whole recent
	for i := range r.Signals {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendIndex(dst, &r.Signals[i])
		like, found := whole.find(r.Signals, i)
		if found {
			dst = strconv.AppendInt(appendName(dst, "like"), int64(like), 10)
		}
		dst = append(appendSignal(dst, &r.Signals[i].Signal, !found), '}')
	}
	return append(dst, "]}"...)
}

// recent are the positions of the last signals that were written whole. There are few, so that a record with
// many Decisions takes no longer.
type recent struct {
	positions [4]int
	written   int
}

// find returns the position of a signal with the Decision, visitor and client of the one at position i. If
// there is none, i becomes the most recent.
func (w *recent) find(signals []Recorded, i int) (like int, found bool) {
	for _, like := range w.positions[:min(w.written, len(w.positions))] {
		if alike(&signals[like].Signal, &signals[i].Signal) {
			return like, true
		}
	}
	w.positions[w.written%len(w.positions)] = i
	w.written++
	return 0, false
}

func alike(a, b *Signal) bool {
	return a.DecisionID == b.DecisionID && bytes.Equal(a.Client, b.Client) &&
		(a.Client == nil) == (b.Client == nil) && (a.Visitor == b.Visitor ||
		a.Visitor != nil && b.Visitor != nil && *a.Visitor == *b.Visitor)
}

// appendHead appends what stands before the signals.
func appendHead(dst []byte, r *Record) []byte {
	dst = appendMember(dst, "record_id", r.RecordID)
	dst = appendMember(dst, "connection_id", string(r.ConnectionID))
	dst = appendMember(dst, "store_id", string(r.StoreID))
	dst = appendTime(dst, "received_at", r.ReceivedAt)
	dst = appendAudit(dst, &r.Audit)
	return append(appendName(dst, "signals"), '[')
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

func appendIndex(dst []byte, r *Recorded) []byte {
	return strconv.AppendInt(append(dst, `{"index":`...), int64(r.Index), 10)
}

// appendSignal appends the members of a signal; whole is with Decision, visitor and client.
func appendSignal(dst []byte, s *Signal, whole bool) []byte {
	dst = appendMember(dst, "signal_id", string(s.ID))
	dst = appendMember(dst, "type", string(s.Type))
	dst = appendTime(dst, "occurred_at", s.OccurredAt)
	if whole {
		dst = appendMember(dst, "decision_id", string(s.DecisionID))
	}
	dst = appendMember(dst, "item_id", string(s.ItemID))
	dst = appendMember(dst, "variant_id", string(s.VariantID))
	dst = appendNumber(dst, "position", s.Position)
	dst = appendNumber(dst, "quantity", s.Quantity)
	dst = appendMember(dst, "order_external_id", s.OrderExternalID)
	if !whole {
		return dst
	}
	dst = appendVisitor(dst, s.Visitor)
	if s.Client != nil {
		dst = append(appendName(dst, "client"), s.Client...)
	}
	return dst
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
		Signals []struct {
			Recorded
			Like *int `json:"like"` // since version 2
		} `json:"signals"`
	}
	if err := decode(b, &in, &in.Schema, newestRecord); err != nil {
		return nil, err
	}
	if in.Signals != nil {
		in.Record.Signals = make([]Recorded, 0, len(in.Signals))
	}
	for i := range in.Signals {
		one := &in.Signals[i]
		in.Record.Signals = append(in.Record.Signals, one.Recorded)
		if one.Like == nil || in.Schema < 2 {
			continue
		}
		if !in.Record.Signals[i].resemble(in.Record.Signals[:i], *one.Like) {
			return nil, fmt.Errorf("signal: malformed record: signal %d is like %d", i, *one.Like)
		}
	}
	return &in.Record, nil
}

// resemble takes Decision, visitor and client from an earlier signal.
func (r *Recorded) resemble(earlier []Recorded, like int) bool {
	if like < 0 || like >= len(earlier) {
		return false
	}
	of := &earlier[like]
	r.DecisionID, r.Visitor, r.Client = of.DecisionID, of.Visitor, of.Client
	return true
}

// decode reads the form of this build's version, and distinguishes a newer version from a malformed record.
func decode(b []byte, into any, version *int, newest int) error {
	err := json.Unmarshal(b, into)
	if err != nil {
		var head struct {
			Schema int `json:"schema"`
		}
		if json.Unmarshal(b, &head) == nil && head.Schema > newest {
			return ErrUnknownSchema
		}
		return fmt.Errorf("signal: malformed record: %w", err)
	}
	switch {
	case *version > newest:
		return ErrUnknownSchema
	case *version < 1:
		return errors.New("signal: malformed record: schema is missing")
	}
	return nil
}
