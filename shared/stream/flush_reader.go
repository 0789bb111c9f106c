package stream

import (
	"errors"
	"io"
	"slices"
	"sync/atomic"

	"github.com/segmentio/kafka-go"
)

var (
	errStopped     = errors.New("stream: the attempt has ended")         // the encoder reads it after stop
	errNothingSent = errors.New("stream: no caller waited for a record") // when the encoder found none
	errSlow        = errors.New("stream: the broker has not answered yet")
)

// flushReader hands the records of one attempt to the transport's encoder, which reads them just before it
// writes the request, possibly after the attempt has timed out.
type flushReader struct {
	records []*queuedRecord
	headers []kafka.Header
	state   atomic.Uint32

	next   int // these three belong to the encoder
	taken  int
	record kafka.Record
}

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
	if !r.state.CompareAndSwap(unread, reading) && r.state.Load() != reading {
		return nil, errStopped
	}
	for r.next < len(r.records) {
		rec := r.records[r.next]
		r.next++
		if rec.abandoned.Load() {
			continue
		}
		r.taken++
		r.record = kafka.Record{Value: kafka.NewBytes(rec.value), Headers: r.headers}
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

// letGo reports whether the encoder needs the values no more: it has read them all, or it has not begun and
// never will.
func (r *flushReader) letGo() bool {
	return r.state.CompareAndSwap(unread, stopped) || r.state.Load() == read
}
