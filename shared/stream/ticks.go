package stream

import (
	"sync"
	"time"
)

// ticks wakes all that wait, every now and then, by one timer. It has none while nobody waits.
type ticks struct {
	every time.Duration

	mu   sync.Mutex
	tick chan struct{} // closed at the next tick; nil when nobody has asked since the last
}

// next returns a channel that is closed at the next tick.
func (t *ticks) next() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.tick == nil {
		tick := make(chan struct{})
		t.tick = tick
		time.AfterFunc(t.every, func() {
			t.mu.Lock()
			t.tick = nil
			t.mu.Unlock()
			close(tick)
		})
	}
	return t.tick
}
