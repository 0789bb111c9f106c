package sink

import (
	"bytes"
	"cmp"
	"errors"
	"slices"

	"github.com/google/uuid"

	"storefront.internal/shared/signal"
)

// Message is one Kafka record.
type Message struct {
	Topic     string
	Partition int
	Offset    int64
	From, To  int64 // the offsets that it stands for, without To; see stream.Batch.Span
	Value     []byte
	Trace     string // W3C traceparent of the request that produced it; may be empty
}

// WholeRecord is the signal index of a parked record.
const WholeRecord = -1

// Parked is something that cannot be stored. For a signal, Bytes are a record with that signal alone, which
// can be produced again.
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

// Reasons for parking.
const (
	ReasonUndecodable = "undecodable" // the bytes are not a record
	ReasonMalformed   = "malformed"   // a record, or a signal in it, that no edge writes
	ReasonRefused     = "refused"     // PostgreSQL refused its values
)

// request is one record of signals: what one request to the edge brought.
type request struct {
	message Message
	id      [16]byte
	record  *signal.Record
}

// pendingSignal is a signal that is not stored yet.
type pendingSignal struct {
	request *request
	index   int
	signal  *signal.Signal
	digest  [16]byte
}

// pendingDecision is a served Decision that is not stored yet.
type pendingDecision struct {
	message Message
	served  *signal.Decision
}

// Batch gathers records of any partitions for one transaction. It is not safe for concurrent use.
type Batch struct {
	decisions []*pendingDecision
	signals   []*pendingSignal
	parked    []Parked
	messages  []message
	size      int
	claim     *claim // nil stores no offsets
}

// Size returns how many signals and Decisions were added.
func (b *Batch) Size() int { return b.size }

// AddSignals adds a record of the topic of signals. What is not a record is added too, to be parked. The only
// error is signal.ErrUnknownSchema: the record is for a newer relay, and its partition has to wait for one.
func (b *Batch) AddSignals(m Message) error {
	r, err := signal.DecodeRecord(m.Value)
	if errors.Is(err, signal.ErrUnknownSchema) {
		return err
	}
	b.size++
	b.remember(m)
	if err != nil {
		b.parkWhole(m, ReasonUndecodable)
		return nil
	}
	id, err := uuid.Parse(r.RecordID)
	if err != nil || !validRecord(r) {
		b.parkWhole(m, ReasonMalformed)
		return nil
	}
	b.size += len(r.Signals) - 1
	req := &request{message: m, id: id, record: r}
	for i := range r.Signals {
		p := &pendingSignal{request: req, index: r.Signals[i].Index, signal: &r.Signals[i].Signal}
		if !validSignal(&r.Signals[i]) {
			b.parked = append(b.parked, p.park(ReasonMalformed, ""))
			continue
		}
		p.digest = signal.LedgerDigest(r.ConnectionID, p.signal.ID)
		b.signals = append(b.signals, p)
	}
	return nil
}

// AddDecision adds a record of the topic of Decisions, with the rules of AddSignals.
func (b *Batch) AddDecision(m Message) error {
	d, err := signal.DecodeDecision(m.Value)
	if errors.Is(err, signal.ErrUnknownSchema) {
		return err
	}
	b.size++
	b.remember(m)
	switch {
	case err != nil:
		b.parkWhole(m, ReasonUndecodable)
	case !validDecision(d):
		b.parkWhole(m, ReasonMalformed)
	default:
		b.decisions = append(b.decisions, &pendingDecision{message: m, served: d})
	}
	return nil
}

func (b *Batch) remember(m Message) {
	b.messages = append(b.messages, message{m.Offset, Span{m.partition(), m.From, m.To}})
}

func (b *Batch) parkWhole(m Message, reason string) { b.parked = append(b.parked, m.park(reason, "")) }

func (m Message) park(reason, sqlState string) Parked {
	return Parked{Topic: m.Topic, Partition: m.Partition, Offset: m.Offset, Index: WholeRecord,
		Reason: reason, SQLState: sqlState, Bytes: m.Value}
}

func (p *pendingSignal) park(reason, sqlState string) Parked {
	alone := *p.request.record
	alone.Signals = []signal.Recorded{{Index: p.index, Signal: *p.signal}}
	parked := p.request.message.park(reason, sqlState)
	parked.Index, parked.ConnectionID = p.index, string(alone.ConnectionID)
	parked.Bytes = signal.AppendRecord(nil, &alone)
	if validSignalID(p.signal) {
		parked.SignalID = string(p.signal.ID)
	}
	return parked
}

func (d *pendingDecision) park(reason, sqlState string) Parked {
	parked := d.message.park(reason, sqlState)
	parked.ConnectionID = string(d.served.ConnectionID)
	return parked
}

// batchTx is what one transaction stores: a batch in the order of arrival, each signal once. A transaction
// body does not change it.
type batchTx struct {
	decisions []*pendingDecision
	signals   []*pendingSignal
	parked    []Parked
	repeated  int       // signals left out because the batch has them twice
	replay    *Replay   // the parked record that the batch is made of; nil for records from Kafka
	messages  []message // the records that are stored with it
	claim     *claim
	again     bool // everything of it was stored before, by other transactions
}

func (b *Batch) transaction() batchTx {
	tx := batchTx{decisions: slices.Clone(b.decisions), parked: b.parked, messages: b.messages,
		claim: b.claim}
	arrived := slices.Clone(b.signals)
	slices.SortStableFunc(arrived, func(x, y *pendingSignal) int {
		return cmp.Or(x.request.record.ReceivedAt.Compare(y.request.record.ReceivedAt),
			bytes.Compare(x.request.id[:], y.request.id[:]), cmp.Compare(x.index, y.index))
	})
	seen := make(map[[16]byte]struct{}, len(arrived))
	for _, p := range arrived {
		if _, again := seen[p.digest]; again {
			tx.repeated++
			continue
		}
		seen[p.digest] = struct{}{}
		tx.signals = append(tx.signals, p)
	}
	return tx
}

// traceparents returns those of the requests whose signals are stored.
func (b *batchTx) traceparents() []string {
	var traces []string
	var last *request
	for _, p := range b.signals {
		if p.request != last && p.request.message.Trace != "" {
			traces = append(traces, p.request.message.Trace)
		}
		last = p.request
	}
	return traces
}
