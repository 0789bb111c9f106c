package stream

import (
	"container/list"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"
)

// The states of a pending record. Whoever moves it out of queued decides: an attempt's encoder by taking its bytes, or the caller by giving up. So a record whose caller was told Refused is
// never sent, not even by a connection that wakes up later.
const (
	queued       uint64 = iota // in the queue, or in a flush that is not encoded yet
	cancelled                  // its caller gave up before any attempt took it, or between two; never sent from now on
	abandoned                  // its caller gave up while an attempt had it; nobody reads its outcome
	firstAttempt               // this and above: the number of the attempt that took its bytes
)

// pending is one record on its way.
type pending struct {
	value   []byte
	trace   string    // W3C traceparent, for a header of the record; "" for none
	size    int       // bytes that it takes in a batch, at most
	since   time.Time // in the queue
	state   atomic.Uint64
	unsure  atomic.Bool   // an earlier attempt ended Unknown
	element *list.Element // its place in the queue while it has one; guarded by the producer's mutex

	// Written before done is closed, read after.
	outcome Outcome
	err     error
	done    chan struct{}
}

// giveBack makes a record that the attempt took free for the next one, unless its caller is gone.
func (p *pending) giveBack(attempt uint64, outcome Outcome) {
	s := p.state.Load()
	if s < firstAttempt {
		return
	}
	if outcome == Unknown || s != attempt {
		p.unsure.Store(true)
	}
	p.state.CompareAndSwap(s, queued)
}

// verdict is what the last attempt means for this record, and whether the flush is the one to settle it; the caller of a cancelled record did so itself.
func (p *pending) verdict(attempt uint64, outcome Outcome) (Outcome, bool) {
	for {
		switch s := p.state.Load(); {
		case s == cancelled:
			return Unknown, false
		case s == queued: // the attempt never took it
			if !p.state.CompareAndSwap(s, attempt) {
				continue
			}
			outcome = Refused
		case s != attempt: // abandoned, or taken by an attempt that was given up
			outcome = Unknown
		}
		if outcome == Refused && p.unsure.Load() {
			outcome = Unknown
		}
		return outcome, true
	}
}

// flushReader hands the records of one attempt to the transport's encoder, which reads it just before the bytes go out, perhaps after the attempt's time ended.
type flushReader struct {
	attempt uint64
	records []*pending
	headers []kafka.Header
	state   atomic.Uint32 // unread, reading, stopped

	next   int // these two belong to the encoder
	record kafka.Record
}

const (
	unread uint32 = iota
	reading
	stopped
)

// ReadRecord implements kafka.RecordReader: the next record that its caller still waits for. After stop it fails, and so does the encoding; a request that is not encoded whole is not sent.
func (r *flushReader) ReadRecord() (*kafka.Record, error) {
	if !r.state.CompareAndSwap(unread, reading) && r.state.Load() != reading {
		return nil, errRevoked
	}
	for r.next < len(r.records) {
		p := r.records[r.next]
		r.next++
		if p.state.CompareAndSwap(queued, r.attempt) {
			r.record = kafka.Record{Value: kafka.NewBytes(p.value), Headers: r.headers}
			if p.trace != "" {
				r.record.Headers = append(slices.Clip(r.headers), kafka.Header{Key: traceHeader, Value: []byte(p.trace)})
			}
			return &r.record, nil
		}
	}
	return nil, io.EOF
}

// stop ends the reading. It tells whether it came before the encoder, which proves that nothing was or will be sent.
func (r *flushReader) stop() bool { return r.state.Swap(stopped) == unread }
