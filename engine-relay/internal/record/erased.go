package record

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"time"

	"storefront.internal/shared/ident"
	"storefront.internal/shared/signal"
)

// Erased is what is to be forgotten: by the digest of its subject, the instant of which everything before is meant.
type Erased map[[16]byte]time.Time

// Visitor is a shopper of a connection of whom everything before an instant is to be forgotten.
type Visitor struct {
	ConnectionID ident.ConnectionID
	VisitorID    ident.VisitorID
	Before       time.Time
}

// before returns the instant of a subject's erasure.
func (e Erased) before(c ident.ConnectionID, s signal.Subject, id string) time.Time {
	return e[signal.ErasureDigest(c, s, id)]
}

// ofVisitor reports whether the visitor, or everybody, is erased as they were at that time.
func (e Erased) ofVisitor(c ident.ConnectionID, v *signal.Visitor, at time.Time) bool {
	return at.Before(e.before(c, signal.ConnectionSubject, "")) ||
		v != nil && v.VisitorID != "" && at.Before(e.before(c, signal.VisitorSubject, string(v.VisitorID)))
}

// ofOrder returns the instant of the erasure of the order's buyer, the zero time when there is none for that time.
func (e Erased) ofOrder(c ident.ConnectionID, s *signal.Signal, at time.Time) time.Time {
	if s.OrderExternalID == "" {
		return time.Time{}
	}
	before := e.before(c, signal.OrderSubject, s.OrderExternalID)
	if !at.Before(before) {
		return time.Time{}
	}
	return before
}

// strip takes out of a request what is to be forgotten: a request is one browser's, so when one of its signals is meant,
// all of its audit and clients go. It returns the buyers who are known by their order alone so far.
func (e Erased) strip(r *signal.Record) (buyers []Visitor, meant bool) {
	meant = e.ofVisitor(r.ConnectionID, nil, r.ReceivedAt)
	for i := range r.Signals {
		s := &r.Signals[i].Signal
		if before := e.ofOrder(r.ConnectionID, s, r.ReceivedAt); !before.IsZero() {
			if s.Visitor != nil && s.Visitor.VisitorID != "" {
				buyers = append(buyers, Visitor{r.ConnectionID, s.Visitor.VisitorID, before})
			}
		} else if !e.ofVisitor(r.ConnectionID, s.Visitor, r.ReceivedAt) {
			continue
		}
		meant, s.Visitor = true, nil
	}
	if meant {
		r.Audit = signal.Audit{Crawler: r.Audit.Crawler}
		for i := range r.Signals {
			r.Signals[i].Signal.Client = nil
		}
	}
	return buyers, meant
}

// Redact takes out of a record's bytes what is to be forgotten; without any the bytes stay as they are. readable is false
// for what is no record of either kind.
func (e Erased) Redact(b []byte) (redacted []byte, readable bool) {
	if r, err := signal.DecodeRecord(b); err == nil {
		if _, meant := e.strip(r); meant {
			b = signal.AppendRecord(nil, r)
		}
		return b, true
	}
	if d, err := signal.DecodeDecision(b); err == nil {
		if d.Visitor != nil && e.ofVisitor(d.ConnectionID, d.Visitor, d.ServedAt) {
			d.Visitor = nil
			b = signal.AppendDecision(nil, d)
		}
		return b, true
	}
	return b, false
}

// Body returns an interaction that was enqueued at that time without its visitor, nil when it has none to be forgotten.
func (e Erased) Body(body []byte, enqueued time.Time) []byte {
	var in struct {
		ConnectionID    ident.ConnectionID `json:"connection_id"`
		ReceivedAt      time.Time          `json:"received_at"`
		OrderExternalID string             `json:"order_external_id"`
		Visitor         *signal.Visitor    `json:"visitor"`
	}
	if err := json.Unmarshal(body, &in); err != nil || in.Visitor == nil {
		return nil
	}
	at := in.ReceivedAt
	if enqueued.Before(at) { // PostgreSQL's clock, as that of the erasure is
		at = enqueued
	}
	s := signal.Signal{Visitor: in.Visitor, OrderExternalID: in.OrderExternalID}
	if !e.ofVisitor(in.ConnectionID, s.Visitor, at) && e.ofOrder(in.ConnectionID, &s, at).IsZero() {
		return nil
	}
	return without(body, "visitor")
}

// without cuts a member out of an object and leaves every other byte as it is.
func without(object []byte, name string) []byte {
	dec := json.NewDecoder(bytes.NewReader(object))
	if _, err := dec.Token(); err != nil {
		return nil
	}
	for {
		start := dec.InputOffset()
		key, err := dec.Token()
		if err != nil || key == json.Delim('}') {
			return nil
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil
		}
		if key != name {
			continue
		}
		head, tail := object[:start], object[dec.InputOffset():]
		if bytes.HasSuffix(head, []byte("{")) { // it was the first
			tail = bytes.TrimPrefix(bytes.TrimLeft(tail, " \t\r\n"), []byte(","))
		}
		return slices.Concat(head, tail)
	}
}

// forget takes out of the work what is to be forgotten, before anything is stored. What it takes out stays out when the
// transaction is repeated.
func (w *work) forget(ctx context.Context, tx Tx) error {
	since, any := w.oldest()
	if !any {
		return nil
	}
	erased, err := tx.Erased(ctx, since)
	if err != nil || len(erased) == 0 {
		return err
	}
	for _, d := range w.decisions {
		if erased.ofVisitor(d.served.ConnectionID, d.served.Visitor, d.served.ServedAt) {
			d.served.Visitor = nil
		}
	}
	var buyers []Visitor
	var last *request
	for _, e := range w.entries {
		if e.request != last {
			last = e.request
			more, _ := erased.strip(e.request.record)
			buyers = append(buyers, more...)
		}
	}
	for i := range w.parked {
		w.parked[i].Bytes, _ = erased.Redact(w.parked[i].Bytes)
	}
	if len(buyers) == 0 {
		return nil
	}
	return tx.Forget(ctx, buyers)
}

// oldest returns the first instant that the work tells of: of what is parked it is not known. any is false for no work.
func (w *work) oldest() (oldest time.Time, any bool) {
	if len(w.parked) > 0 {
		return time.Time{}, true
	}
	first := func(at time.Time) {
		if !any || at.Before(oldest) {
			oldest, any = at, true
		}
	}
	for _, d := range w.decisions {
		first(d.served.ServedAt)
	}
	for _, e := range w.entries {
		first(e.request.record.ReceivedAt)
	}
	return oldest, any
}
