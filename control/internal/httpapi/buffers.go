package httpapi

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"storefront.internal/shared/fault"
)

// The largest body of deliver_observations, and the first buffer for a body without a length.
const (
	maxObservationsBody = 32 << 20
	firstBuffer         = 64 << 10
)

// bodyBuffers buffers the bodies of deliver_observations and deliver_webhook under one budget of the process.
type bodyBuffers struct {
	mu         sync.Mutex
	free       int64
	bytesInUse prometheus.Gauge
	rejected   prometheus.Counter
}

func newBodyBuffers(budget int64, m *Metrics) *bodyBuffers {
	return &bodyBuffers{free: budget, bytesInUse: m.bodyBytes, rejected: m.bodiesRefused}
}

// reserve takes n bytes of the budget; it takes none when they are not free.
func (b *bodyBuffers) reserve(n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n > b.free {
		b.rejected.Inc()
		return false
	}
	b.free -= n
	b.bytesInUse.Add(float64(n))
	return true
}

func (b *bodyBuffers) release(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free += n
	b.bytesInUse.Sub(float64(n))
}

// read returns the body, and a function that gives its bytes back to the budget.
func (b *bodyBuffers) read(r *http.Request, limit int64) (body []byte, release func(), err error) {
	var taken int64
	if body, err = b.buffer(r, limit, &taken); err != nil {
		b.release(taken)
		return nil, nil, err
	}
	return body, func() { b.release(taken) }, nil
}

// buffer reserves a known length at once: else bodies that do not all fit would each hold a part and fail
// together. For an unknown length it starts small and doubles.
func (b *bodyBuffers) buffer(r *http.Request, limit int64, taken *int64) (body []byte, err error) {
	if r.ContentLength > limit {
		return nil, tooLarge(limit)
	}
	size := r.ContentLength
	if size < 0 {
		size = firstBuffer
	}
	for {
		if !b.reserve(size - *taken) {
			return nil, &fault.Error{Code: fault.ServiceUnavailable,
				Detail: "Too many bodies are being read right now.", RetryAfter: time.Second}
		}
		*taken = size
		grown := make([]byte, size)
		n := copy(grown, body)
		m, err := io.ReadFull(r.Body, grown[n:])
		body = grown[:n+m]
		if r.ContentLength >= 0 || err != nil || size == limit {
			return body, checkEnd(r, err, limit)
		}
		size = min(2*size, limit)
	}
}

// checkEnd tells how the reading ended: at the end of the body, beyond the limit, or because the client went
// away.
func checkEnd(r *http.Request, err error, limit int64) error {
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
	case errors.Is(err, io.EOF), r.ContentLength < 0 && errors.Is(err, io.ErrUnexpectedEOF):
		return nil
	}
	return fault.New(fault.InvalidRequest, "The body could not be read.")
}

func tooLarge(limit int64) error {
	return fault.New(fault.PayloadTooLarge, fmt.Sprintf("The body is larger than %d MiB.", limit>>20))
}
