package process

import (
	"bytes"
	"sync"
)

// Tail keeps the last bytes of a log for the error message of a child that did not start.
type Tail struct {
	mu  sync.Mutex
	buf []byte
}

const tailBytes = 4 << 10

// Write keeps the last few kilobytes.
func (t *Tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b...)
	if over := len(t.buf) - tailBytes; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(b), nil
}

// String is what was written last.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.buf))
}
