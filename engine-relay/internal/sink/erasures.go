package sink

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"time"

	"storefront.internal/shared/ident"
	"storefront.internal/shared/signal"
)

// Erasures are the requests to erase personal data, by the digest of the subject: everything of the subject
// from before the instant is erased.
type Erasures map[[16]byte]time.Time

// VisitorErasure asks for the erasure of everything of a visitor from before an instant.
type VisitorErasure struct {
	ConnectionID ident.ConnectionID
	VisitorID    ident.VisitorID
	Before       time.Time
}

// before returns the instant of a subject's erasure, the zero time when there is none.
func (e Erasures) before(c ident.ConnectionID, s signal.Subject, id string) time.Time {
	return e[signal.ErasureDigest(c, s, id)]
}

// coversVisitor reports whether data of the visitor from that time is erased. A nil visitor asks for the
// whole connection.
func (e Erasures) coversVisitor(c ident.ConnectionID, v *signal.Visitor, at time.Time) bool {
	return at.Before(e.before(c, signal.ConnectionSubject, "")) ||
		v != nil && v.VisitorID != "" && at.Before(e.before(c, signal.VisitorSubject, string(v.VisitorID)))
}

// orderErasure returns the instant of the erasure of the order's buyer, the zero time when it does not cover
// that time.
func (e Erasures) orderErasure(c ident.ConnectionID, s *signal.Signal, at time.Time) time.Time {
	if s.OrderExternalID == "" {
		return time.Time{}
	}
	before := e.before(c, signal.OrderSubject, s.OrderExternalID)
	if !at.Before(before) {
		return time.Time{}
	}
	return before
}

// redactRecord returns a copy of the record without erased personal data, or r itself when nothing in it is
// erased. One request comes from one browser, so one erased signal removes the request's audit and clients as
// well. It also returns the buyers that were known only by their orders.
func (e Erasures) redactRecord(r *signal.Record) (redacted *signal.Record, buyers []VisitorErasure) {
	out := *r
	out.Signals = slices.Clone(r.Signals)
	erased := e.coversVisitor(r.ConnectionID, nil, r.ReceivedAt)
	for i := range out.Signals {
		s := &out.Signals[i].Signal
		if before := e.orderErasure(r.ConnectionID, s, r.ReceivedAt); !before.IsZero() {
			if s.Visitor != nil && s.Visitor.VisitorID != "" {
				buyers = append(buyers, VisitorErasure{r.ConnectionID, s.Visitor.VisitorID, before})
			}
		} else if !e.coversVisitor(r.ConnectionID, s.Visitor, r.ReceivedAt) {
			continue
		}
		erased, s.Visitor = true, nil
	}
	if !erased {
		return r, nil
	}
	out.Audit = signal.Audit{Crawler: r.Audit.Crawler}
	for i := range out.Signals {
		out.Signals[i].Client = nil
	}
	return &out, buyers
}

// redactDecision returns a copy of the Decision without its erased visitor, or d itself when it is not
// erased.
func (e Erasures) redactDecision(d *signal.Decision) *signal.Decision {
	if !e.coversVisitor(d.ConnectionID, d.Visitor, d.ServedAt) {
		return d
	}
	out := *d
	out.Visitor = nil
	return &out
}

// RedactBytes removes erased personal data from the bytes of a record; without any it returns b. readable is
// false for bytes that are a record of neither topic.
func (e Erasures) RedactBytes(b []byte) (redacted []byte, readable bool) {
	if r, err := signal.DecodeRecord(b); err == nil {
		if out, _ := e.redactRecord(r); out != r {
			b = signal.AppendRecord(nil, out)
		}
		return b, true
	}
	if d, err := signal.DecodeDecision(b); err == nil {
		if out := e.redactDecision(d); d.Visitor != nil && out != d {
			b = signal.AppendDecision(nil, out)
		}
		return b, true
	}
	return b, false
}

// RedactBody returns the body of a queued interaction without its erased visitor, nil when there is nothing
// to remove.
func (e Erasures) RedactBody(body []byte, enqueued time.Time) []byte {
	var in struct {
		ConnectionID    ident.ConnectionID `json:"connection_id"`
		ReceivedAt      time.Time          `json:"received_at"`
		OrderExternalID string             `json:"order_external_id"`
		Visitor         *signal.Visitor    `json:"visitor"`
	}
	if err := json.Unmarshal(body, &in); err != nil || in.Visitor == nil {
		return nil
	}
	at := in.ReceivedAt // by the edge's clock
	if enqueued.Before(at) {
		at = enqueued // by PostgreSQL's clock, as the erasure's instant
	}
	s := signal.Signal{Visitor: in.Visitor, OrderExternalID: in.OrderExternalID}
	if !e.coversVisitor(in.ConnectionID, s.Visitor, at) && e.orderErasure(in.ConnectionID, &s, at).IsZero() {
		return nil
	}
	return removeMember(body, "visitor")
}

// removeMember cuts a member out of a JSON object and leaves every other byte as it is.
func removeMember(object []byte, name string) []byte {
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
		if bytes.HasSuffix(head, []byte("{")) { // the first member
			tail = bytes.TrimPrefix(bytes.TrimLeft(tail, " \t\r\n"), []byte(","))
		}
		return slices.Concat(head, tail)
	}
}

// applyErasures returns the batch without erased personal data, and requests the erasure of buyers that it
// finds. It does not change b: when the transaction is repeated, the buyers must be found again.
func (b *batchTx) applyErasures(ctx context.Context, tx Tx) (*batchTx, error) {
	since, ok := b.oldestInstant()
	if !ok {
		return b, nil
	}
	erasures, err := tx.Erasures(ctx, since)
	if err != nil || len(erasures) == 0 {
		return b, err
	}
	redacted, buyers := b.redacted(erasures)
	if len(buyers) > 0 {
		err = tx.RequestErasures(ctx, buyers)
	}
	return redacted, err
}

func (b *batchTx) redacted(e Erasures) (*batchTx, []VisitorErasure) {
	out := &batchTx{parked: slices.Clone(b.parked), repeated: b.repeated, replay: b.replay,
		messages: b.messages, claim: b.claim}
	for i := range out.parked {
		out.parked[i].Bytes, _ = e.RedactBytes(out.parked[i].Bytes)
	}
	for _, d := range b.decisions {
		out.decisions = append(out.decisions,
			&pendingDecision{message: d.message, served: e.redactDecision(d.served)})
	}
	var buyers []VisitorErasure
	requests := make(map[*request]*request)
	signals := make(map[*signal.Signal]*signal.Signal)
	for _, p := range b.signals {
		if requests[p.request] == nil {
			record, more := e.redactRecord(p.request.record)
			buyers = append(buyers, more...)
			requests[p.request] = &request{message: p.request.message, id: p.request.id, record: record}
			for i := range record.Signals {
				signals[&p.request.record.Signals[i].Signal] = &record.Signals[i].Signal
			}
		}
		out.signals = append(out.signals, &pendingSignal{
			request: requests[p.request], index: p.index, signal: signals[p.signal], digest: p.digest,
		})
	}
	return out, buyers
}

// oldestInstant returns the first instant that the batch has data of. A parked record may be of any time, so
// it counts as the zero time. ok is false for an empty batch.
func (b *batchTx) oldestInstant() (oldest time.Time, ok bool) {
	if len(b.parked) > 0 {
		return time.Time{}, true
	}
	add := func(at time.Time) {
		if !ok || at.Before(oldest) {
			oldest, ok = at, true
		}
	}
	for _, d := range b.decisions {
		add(d.served.ServedAt)
	}
	for _, p := range b.signals {
		add(p.request.record.ReceivedAt)
	}
	return oldest, ok
}
