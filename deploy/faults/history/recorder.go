package history

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// Recorder writes a history. It is safe for concurrent use; the order of the lines is the order of their instants.
type Recorder struct {
	start time.Time

	mu    sync.Mutex
	out   *bufio.Writer
	calls uint64
	err   error
}

// NewRecorder starts the run's clock.
func NewRecorder(w io.Writer) *Recorder {
	return &Recorder{start: time.Now(), out: bufio.NewWriterSize(w, 1<<16)}
}

// Now is the run's clock.
func (r *Recorder) Now() int64 { return int64(time.Since(r.start)) }

// Start is the wall clock's time at which the run's clock stood at zero.
func (r *Recorder) Start() time.Time { return r.start }

// Invoke writes the begin of a call, before anything is sent, and answers the call's number.
func (r *Recorder) Invoke(e Event) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls++
	e.Call, e.Kind, e.At = r.calls, Invoke, r.Now()
	r.write(e)
	return e.Call
}

// End writes the end of a call, after its answer was read or given up.
func (r *Recorder) End(call uint64, e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e.Call, e.At = call, r.Now()
	if e.Kind != OK && e.Kind != Fail && e.Kind != Info {
		r.err = errors.Join(r.err, fmt.Errorf("history: call %d ends with kind %q", call, e.Kind))
	}
	r.write(e)
}

// Fault writes a fault that was healed.
func (r *Recorder) Fault(f Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.write(f)
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

// Flush writes what is buffered, and answers the first error of the whole record: a history with a hole proves nothing.
func (r *Recorder) Flush() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return errors.Join(r.err, r.out.Flush())
}
