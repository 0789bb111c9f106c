package httpapi

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"storefront.internal/shared/fault"
)

// The bounds of operation 4's body: what one may hold, and what one without a length begins with.
const (
	maxObservationsBody = 32 << 20
	firstBuffer         = 64 << 10
)

// bodies buffers the bodies of operations 4 and 12 under one budget of the process.
type bodies struct {
	mu      sync.Mutex
	free    int64
	held    prometheus.Gauge
	refused prometheus.Counter
}

func newBodies(budget int64, m *Metrics) *bodies {
	return &bodies{free: budget, held: m.bodyBytes, refused: m.bodiesRefused}
}

// take takes n bytes of the budget, or none.
func (b *bodies) take(n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n > b.free {
		b.refused.Inc()
		return false
	}
	b.free -= n
	b.held.Add(float64(n))
	return true
}

func (b *bodies) give(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free += n
	b.held.Sub(float64(n))
}

// read returns the body, and what gives its bytes back to the budget.
func (b *bodies) read(r *http.Request, most int64) (body []byte, release func(), err error) {
	var taken int64
	if body, err = b.buffer(r, most, &taken); err != nil {
		b.give(taken)
		return nil, nil, err
	}
	return body, func() { b.give(taken) }, nil
}

// buffer takes a length that is known at once, so that bodies that cannot all fit do not each hold a part and fail
// together. Without one it begins small and doubles.
func (b *bodies) buffer(r *http.Request, most int64, taken *int64) (body []byte, err error) {
	if r.ContentLength > most {
		return nil, tooLarge(most)
	}
	size := r.ContentLength
	if size < 0 {
		size = firstBuffer
	}
	for {
		if !b.take(size - *taken) {
			return nil, &fault.Error{Code: fault.ServiceUnavailable, Detail: "Too many bodies are being read right now.", RetryAfter: time.Second}
		}
		*taken = size
		grown := make([]byte, size)
		n := copy(grown, body)
		m, err := io.ReadFull(r.Body, grown[n:])
		body = grown[:n+m]
		if r.ContentLength >= 0 || err != nil || size == most {
			return body, ended(r, err, most)
		}
		size = min(2*size, most)
	}
}

// ended judges how the reading ended: at the end of the body, beyond the limit, or without the client.
func ended(r *http.Request, err error, most int64) error {
	if err == nil { // the buffer is full: is that all?
		var more [1]byte
		if _, err = io.ReadFull(r.Body, more[:]); err == nil {
			return tooLarge(most)
		}
	}
	var limit *http.MaxBytesError
	switch {
	case errors.As(err, &limit):
		return tooLarge(most)
	case errors.Is(err, io.EOF), r.ContentLength < 0 && errors.Is(err, io.ErrUnexpectedEOF):
		return nil
	}
	return fault.New(fault.InvalidRequest, "The body could not be read.")
}

func tooLarge(most int64) error {
	return fault.New(fault.PayloadTooLarge, "The body is larger than "+strconv.FormatInt(most>>20, 10)+" MiB.")
}
