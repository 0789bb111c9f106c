package stream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"
)

var (
	errStopped     = errors.New("stream: the attempt has ended")         // the encoder reads it after stop
	errNothingSent = errors.New("stream: no caller waited for a record") // when the encoder found none
	errSlow        = errors.New("stream: the broker has not answered yet")
)

// errHung is the error of a leader without a sign of life: a timeout.
var errHung = fmt.Errorf("stream: the broker does not answer: %w", context.DeadlineExceeded)

// flushReader hands the records of one attempt to the transport's encoder, which reads them just before it
// writes the request, possibly after the attempt has timed out.
type flushReader struct {
	records []*queuedRecord
	headers []kafka.Header
	now     func() time.Time
	state   atomic.Uint32
	began   atomic.Pointer[time.Time] // when the encoder had a connection; nil until then

	next   int // these belong to the encoder
	taken  int
	record kafka.Record
	value  recordValue
}

// recordValue is the value of a record for the encoder, which reads one after the other.
type recordValue struct{ bytes.Reader }

// Close implements kafka.Bytes.
func (*recordValue) Close() error { return nil }

// The states of a flushReader.
const (
	unread  uint32 = iota // the encoder has not begun
	reading               // it may be copying the value of a record
	read                  // it has read all records
	stopped               // it gets no more records
)

// ReadRecord implements kafka.RecordReader: it returns the next record whose caller still waits. After stop
// it fails; the transport does not send a request that it could not encode.
func (r *flushReader) ReadRecord() (*kafka.Record, error) {
	if r.state.CompareAndSwap(unread, reading) {
		now := r.now()
		r.began.Store(&now)
	} else if r.state.Load() != reading {
		return nil, errStopped
	}
	for r.next < len(r.records) {
		rec := r.records[r.next]
		r.next++
		if rec.abandoned.Load() {
			continue
		}
		r.taken++
		r.value.Reset(rec.value)
		r.record = kafka.Record{Value: &r.value, Headers: r.headers}
		if rec.trace != "" {
			r.record.Headers = append(slices.Clip(r.headers),
				kafka.Header{Key: traceHeader, Value: []byte(rec.trace)})
		}
		return &r.record, nil
	}
	if !r.state.CompareAndSwap(reading, read) {
		return nil, errStopped
	}
	return nil, io.EOF
}

// stop ends the reading and returns the state before.
func (r *flushReader) stop() uint32 { return r.state.Swap(stopped) }

// withdraw reports whether the encoder has not begun; then it never will.
func (r *flushReader) withdraw() bool { return r.state.CompareAndSwap(unread, stopped) }

// written reports whether the encoder has read all records. It needs them no more, and the broker may have
// them.
func (r *flushReader) written() bool { return r.state.Load() == read }

// sent returns when the request was sent, or else was of the attempt's beginning.
func (r *flushReader) sent(beginning time.Time) time.Time {
	if began := r.began.Load(); began != nil {
		return *began
	}
	return beginning
}
