package httpapi

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
)

// The largest body of deliver_observations, and the first buffer of a body.
const (
	maxObservationsBody = 32 << 20
	firstBuffer         = 64 << 10
)

// A body comes in parts: of at least firstBuffer, and of at least an eighth of a known length. A part that
// takes longer than partTimeout ends the request, and all of them share bodyTimeout.
const (
	bodyParts   = 8
	partTimeout = 5 * time.Second
	bodyTimeout = 20 * time.Second
)

// bodyBuffers buffers the bodies of one operation under one budget of the process.
type bodyBuffers struct {
	mu         sync.Mutex
	free       int64
	share      int64 // the most that a connection may hold
	held       map[ident.ConnectionID]int64
	bytesInUse prometheus.Gauge
	rejected   prometheus.Counter
}

func newBodyBuffers(budget, share int64, m bodyMetrics) *bodyBuffers {
	return &bodyBuffers{free: budget, share: share, held: make(map[ident.ConnectionID]int64),
		bytesInUse: m.bytes, rejected: m.refused}
}

// bodyBuffer is the part of the budget that one request holds.
type bodyBuffer struct {
	of         *bodyBuffers
	connection ident.ConnectionID
	taken      int64
	body       []byte
}

// resize makes the request hold n bytes; it changes nothing and reports an error when they are not free.
func (b *bodyBuffer) resize(n int64) error {
	all, more := b.of, n-b.taken
	all.mu.Lock()
	defer all.mu.Unlock()
	switch {
	case more > all.free:
		all.rejected.Inc()
		return &fault.Error{Code: fault.ServiceUnavailable,
			Detail: "Too many bodies are being read right now.", RetryAfter: time.Second}
	case all.held[b.connection]+more > all.share && more > 0:
		all.rejected.Inc()
		return &fault.Error{Code: fault.ServiceUnavailable,
			Detail: "Too many bodies of this connection are being read right now.", RetryAfter: time.Second}
	}
	all.free -= more
	if all.held[b.connection] += more; all.held[b.connection] == 0 {
		delete(all.held, b.connection)
	}
	all.bytesInUse.Add(float64(more))
	b.taken = n
	return nil
}

// release gives everything back.
func (b *bodyBuffer) release() { _ = b.resize(0) }

// read returns the body in a buffer, which the caller releases.
func (b *bodyBuffers) read(r *request, limit int64) (*bodyBuffer, error) {
	one := &bodyBuffer{of: b, connection: r.params.connection}
	deadline := readDeadline{of: http.NewResponseController(r.answer), end: time.Now().Add(bodyTimeout)}
	err := one.fill(r.http, limit, &deadline)
	if err == nil {
		deadline.clear()
		return one, nil
	}
	one.release()
	// The deadline stays, since the server skips what is left of the body.
	if errors.Is(err, os.ErrDeadlineExceeded) {
		r.answer.Header().Set("Connection", "close")
		err = fault.New(fault.InvalidRequest, "The body came too slowly.")
	}
	return nil, err
}

// fill reads the body. A known length is reserved as a whole once the first part is there: a client that
// sends nothing holds little, and bodies that do not all fit do not each hold a part and fail together. For
// an unknown length the buffer doubles.
func (b *bodyBuffer) fill(r *http.Request, limit int64, deadline *readDeadline) error {
	if r.ContentLength > limit {
		return tooLarge(limit)
	}
	for {
		size := max(firstBuffer, int64(2*len(b.body)))
		if r.ContentLength >= 0 && (len(b.body) > 0 || r.ContentLength < size) {
			size = r.ContentLength
		}
		size = min(size, limit)
		if err := b.resize(size); err != nil {
			return err
		}
		err := b.grow(r.Body, int(size), deadline)
		if err != nil || size == r.ContentLength || size == limit {
			return b.checkEnd(r, err, limit)
		}
	}
}

// grow reads until the body has n bytes.
func (b *bodyBuffer) grow(from io.Reader, n int, deadline *readDeadline) error {
	grown := make([]byte, n)
	have := copy(grown, b.body)
	b.body = grown[:have]
	for len(b.body) < n {
		deadline.extend()
		end := min(n, len(b.body)+max(firstBuffer, n/bodyParts))
		m, err := io.ReadFull(from, grown[len(b.body):end])
		b.body = grown[:len(b.body)+m]
		if err != nil {
			return err
		}
	}
	return nil
}

// readDeadline is the deadline of the connection while a body is read. A connection without deadlines, in a
// test, has none.
type readDeadline struct {
	of  *http.ResponseController
	end time.Time
}

func (d *readDeadline) extend() {
	next := time.Now().Add(partTimeout)
	if next.After(d.end) {
		next = d.end
	}
	_ = d.of.SetReadDeadline(next)
}

// clear removes the deadline: the server reads ahead while the request is served, and takes an expired
// deadline for the end of the connection.
func (d *readDeadline) clear() { _ = d.of.SetReadDeadline(time.Time{}) }

// checkEnd tells how the reading ended: at the end of the body, beyond the limit, or because the client went
// away.
func (b *bodyBuffer) checkEnd(r *http.Request, err error, limit int64) error {
	if err == nil { // the buffer is full: is that all?
		var more [1]byte
		if _, err = io.ReadFull(r.Body, more[:]); err == nil {
			return tooLarge(limit)
		}
	}
	var maxBytes *http.MaxBytesError
	switch {
	case errors.As(err, &maxBytes):
		return tooLarge(limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return err
	case r.ContentLength >= 0 && int64(len(b.body)) < r.ContentLength:
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil
	}
	return fault.New(fault.InvalidRequest, "The body could not be read.")
}

func tooLarge(limit int64) error {
	return fault.New(fault.PayloadTooLarge, fmt.Sprintf("The body is larger than %d MiB.", limit>>20))
}
