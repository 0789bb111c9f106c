package record

import (
	"bytes"
	"cmp"
	"errors"
	"slices"

	"github.com/google/uuid"

	"storefront.internal/shared/signal"
)

// Message is one record as it lay in its topic.
type Message struct {
	Topic     string
	Partition int
	Offset    int64
	Value     []byte
	Trace     string // W3C traceparent of the request that brought it; may be empty
}

// WholeRecord is the signal index of a parked record.
const WholeRecord = -1

// Parked is what cannot be stored. Of a signal, Bytes are a record that holds it alone, fit to be produced again.
type Parked struct {
	Topic        string
	Partition    int
	Offset       int64
	Index        int // of the signal in its request, or WholeRecord
	ConnectionID string
	SignalID     string
	Reason       string
	SQLState     string
	Bytes        []byte
}

// Why something is parked.
const (
	ReasonUndecodable = "undecodable" // the bytes are no record
	ReasonMalformed   = "malformed"   // a record, or a signal in it, that no edge writes
	ReasonRefused     = "refused"     // PostgreSQL refused its values
)

// request is one record of signals and the place where it lay.
type request struct {
	message Message
	id      [16]byte
	record  *signal.Record
}

// entry is one signal on its way.
type entry struct {
	request *request
	index   int
	signal  *signal.Signal
	digest  [16]byte
}

// decision is one served Decision on its way.
type decision struct {
	message Message
	served  *signal.Decision
}

// Batch gathers records of any partitions for one transaction. It is not safe for concurrent use.
type Batch struct {
	decisions []*decision
	entries   []*entry
	parked    []Parked
	size      int
}

// Size returns how many signals and Decisions were added.
func (b *Batch) Size() int { return b.size }

// AddSignals takes a record of the topic of signals. Its only error is signal.ErrUnknownSchema: the record is for a
// newer relay, and its partition has to wait for one. What is no record is taken too, to be parked.
func (b *Batch) AddSignals(m Message) error {
	r, err := signal.DecodeRecord(m.Value)
	if errors.Is(err, signal.ErrUnknownSchema) {
		return err
	}
	b.size++
	if err != nil {
		b.parkWhole(m, ReasonUndecodable)
		return nil
	}
	id, err := uuid.Parse(r.RecordID)
	if err != nil || !soundRecord(r) {
		b.parkWhole(m, ReasonMalformed)
		return nil
	}
	b.size += len(r.Signals) - 1
	req := &request{message: m, id: id, record: r}
	for i := range r.Signals {
		e := &entry{request: req, index: r.Signals[i].Index, signal: &r.Signals[i].Signal}
		if !soundSignal(&r.Signals[i]) {
			b.parked = append(b.parked, e.park(ReasonMalformed, ""))
			continue
		}
		e.digest = signal.LedgerDigest(r.ConnectionID, e.signal.ID)
		b.entries = append(b.entries, e)
	}
	return nil
}

// AddDecision takes a record of the topic of Decisions, with AddSignals' rules.
func (b *Batch) AddDecision(m Message) error {
	d, err := signal.DecodeDecision(m.Value)
	if errors.Is(err, signal.ErrUnknownSchema) {
		return err
	}
	b.size++
	switch {
	case err != nil:
		b.parkWhole(m, ReasonUndecodable)
	case !soundDecision(d):
		b.parkWhole(m, ReasonMalformed)
	default:
		b.decisions = append(b.decisions, &decision{message: m, served: d})
	}
	return nil
}

func (b *Batch) parkWhole(m Message, reason string) {
	b.parked = append(b.parked, Parked{Topic: m.Topic, Partition: m.Partition, Offset: m.Offset, Index: WholeRecord,
		Reason: reason, Bytes: m.Value})
}

func (e *entry) park(reason, sqlState string) Parked {
	alone := *e.request.record
	alone.Signals = []signal.Recorded{{Index: e.index, Signal: *e.signal}}
	m := e.request.message
	p := Parked{Topic: m.Topic, Partition: m.Partition, Offset: m.Offset, Index: e.index, Reason: reason, SQLState: sqlState,
		ConnectionID: string(alone.ConnectionID), Bytes: signal.AppendRecord(nil, &alone)}
	if soundID(e.signal) {
		p.SignalID = string(e.signal.ID)
	}
	return p
}

func (d *decision) park(reason, sqlState string) Parked {
	m := d.message
	return Parked{Topic: m.Topic, Partition: m.Partition, Offset: m.Offset, Index: WholeRecord, Reason: reason,
		SQLState: sqlState, ConnectionID: string(d.served.ConnectionID), Bytes: m.Value}
}

// work is what one transaction stores: a batch without what the batch itself holds twice, in the order of arrival.
type work struct {
	decisions []*decision
	entries   []*entry
	parked    []Parked
	repeated  int // signals left out, as the batch holds them twice
}

func (b *Batch) work() work {
	w := work{decisions: slices.Clone(b.decisions), parked: b.parked}
	arrived := slices.Clone(b.entries)
	slices.SortStableFunc(arrived, func(x, y *entry) int {
		return cmp.Or(x.request.record.ReceivedAt.Compare(y.request.record.ReceivedAt),
			bytes.Compare(x.request.id[:], y.request.id[:]), cmp.Compare(x.index, y.index))
	})
	seen := make(map[[16]byte]struct{}, len(arrived))
	for _, e := range arrived {
		if _, again := seen[e.digest]; again {
			w.repeated++
			continue
		}
		seen[e.digest] = struct{}{}
		w.entries = append(w.entries, e)
	}
	return w
}

// traceparents are those of the requests whose signals the work stores, each once.
func (w *work) traceparents() []string {
	var traces []string
	var last *request
	for _, e := range w.entries {
		if e.request != last && e.request.message.Trace != "" {
			traces = append(traces, e.request.message.Trace)
		}
		last = e.request
	}
	return traces
}
