package access

import (
	"sync"
	"time"
)

// entry is what memory holds of a key: a value, the generation of versions in which it was read, and its end.
type entry[V any] struct {
	value      V
	generation uint64
	until      time.Time
}

// memory is a bounded map. At its bound an arbitrary entry goes: what is lost costs a look-up.
type memory[V any] struct {
	mu      sync.RWMutex
	entries map[Digest]entry[V]
	max     int
}

func newMemory[V any](bound int) *memory[V] {
	return &memory[V]{entries: make(map[Digest]entry[V]), max: bound}
}

func (m *memory[V]) get(d Digest) (entry[V], bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	e, ok := m.entries[d]
	return e, ok
}

func (m *memory[V]) put(d Digest, e entry[V]) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.entries[d]; !known && len(m.entries) >= m.max {
		for victim := range m.entries {
			delete(m.entries, victim)
			break
		}
	}
	m.entries[d] = e
}

func (m *memory[V]) drop(d Digest) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.entries, d)
}

// clear forgets everything.
func (m *memory[V]) clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.entries)
}

func (m *memory[V]) len() int {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return len(m.entries)
}
