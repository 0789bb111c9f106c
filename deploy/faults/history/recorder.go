package history

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"storefront.internal/shared/backoff"
)

// Recorder writes a history in the order of time. It is safe for concurrent use.
type Recorder struct {
	start time.Time

	mu    sync.Mutex
	out   *bufio.Writer
	calls uint64
	err   error
}

// NewRecorder makes a recorder whose clock starts now.
func NewRecorder(w io.Writer) *Recorder {
	return &Recorder{start: time.Now(), out: bufio.NewWriterSize(w, 1<<16)}
}

// Now returns the time since the start in nanoseconds.
func (r *Recorder) Now() int64 { return int64(time.Since(r.start)) }

// Start returns the wall clock at time 0.
func (r *Recorder) Start() time.Time { return r.start }

// Invoke writes the begin of a call and returns its number.
func (r *Recorder) Invoke(e Event) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls++
	e.Call, e.Kind, e.At = r.calls, Invoke, r.Now()
	r.write(e)
	return e.Call
}

// Complete writes the end of a call.
func (r *Recorder) Complete(call uint64, e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e.Call, e.At = call, r.Now()
	if e.Kind != OK && e.Kind != Fail && e.Kind != Info {
		r.err = errors.Join(r.err, fmt.Errorf("history: call %d ends with kind %q", call, e.Kind))
	}
	r.write(e)
}

// RecordFault writes a fault after it was healed.
func (r *Recorder) RecordFault(f Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.write(f)
}

// stallTick is how often RecordStalls wakes up. It records a stall when it wakes up minStall too late.
const (
	stallTick = 20 * time.Millisecond
	minStall  = 200 * time.Millisecond
)

// RecordStalls writes the stalls of this machine until the context ends.
func (r *Recorder) RecordStalls(ctx context.Context) {
	for last := r.Now(); backoff.Sleep(ctx, stallTick) == nil; {
		now := r.Now()
		if now-last > int64(stallTick+minStall) {
			r.mu.Lock()
			r.write(Stall{At: last, Until: now})
			r.mu.Unlock()
		}
		last = now
	}
}

func (r *Recorder) write(line any) {
	text, err := json.Marshal(line)
	if err == nil {
		_, err = r.out.Write(append(text, '\n'))
	}
	if err != nil && r.err == nil {
		r.err = err
	}
}

// Flush writes the buffer and returns the first error of the recorder: an incomplete history proves nothing.
func (r *Recorder) Flush() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return errors.Join(r.err, r.out.Flush())
}
