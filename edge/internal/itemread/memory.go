package itemread

import (
	"hash/maphash"
	"math/bits"
	"sync"
)

// memory is what this process remembers of items: documents, whether items exist, and the marks below which no answer
// may fall. Reading documents and existence takes no lock. A document in memory is never older than its item's mark.
type memory struct {
	seed   maphash.Seed
	docs   *table[*Document]
	exists *table[bool]

	mu    sync.Mutex // of all writers
	marks marks
}

// What memory holds beside documents.
const (
	existsBytes = 8 << 20
	maxMarks    = 400_000 // some 25 MB
)

func newMemory(limit int64) *memory {
	seed := maphash.MakeSeed()
	return &memory{seed: seed, docs: newTable[*Document](seed, limit, 4<<10), exists: newTable[bool](seed, existsBytes, entryCost),
		marks: newMarks(maxMarks)}
}

func (m *memory) hash(k Key) uint64 {
	return bits.RotateLeft64(maphash.String(m.seed, string(k.Connection)), 1) ^ maphash.String(m.seed, string(k.Item))
}

// mark is that of the item; the zero one when none is remembered.
func (m *memory) mark(k Key) mark {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.marks.get(k)
}

// keep remembers a version that is not older than the mark, and reports false for one that is. It returns the document
// that stands for it: one that is there already keeps its compressed copy.
func (m *memory) keep(hash uint64, k Key, v Version, proven, until int64) (*Document, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.marks.raise(k, mark{v.Revision, proven}) {
		return nil, false
	}
	m.exists.drop(hash, k)
	if e := m.docs.get(hash, k); e != nil && e.value.Revision == v.Revision {
		e.late.Store(false)
		e.until.Store(until)
		return e.value, true
	}
	d := NewDocument(k.Item, v)
	m.docs.put(hash, k, d, d.cost(), until)
	return d, true
}

// keepDeleted remembers that the item does not exist since the revision; 0 when nobody knows of it.
func (m *memory) keepDeleted(hash uint64, k Key, revision, proven, until int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if revision > 0 && !m.marks.raise(k, mark{revision, proven}) {
		return false
	}
	m.docs.drop(hash, k)
	m.exists.put(hash, k, false, 0, until)
	return true
}

// noteExists remembers whether an item exists, from a look-up that told no revision. So it never makes an item that was
// answered look missing.
func (m *memory) noteExists(hash uint64, k Key, exists bool, until int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !exists && m.marks.get(k).revision > 0 {
		return
	}
	m.exists.put(hash, k, exists, 0, until)
}

// expire ends the life of what is remembered of the item and is older than the revision.
func (m *memory) expire(hash uint64, k Key, revision int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.docs.get(hash, k); e != nil && e.value.Revision < revision {
		e.until.Store(0)
	}
	if m.marks.get(k).revision < revision {
		m.exists.drop(hash, k)
	}
}

// mark is the greatest revision that was answered of an item, and when PostgreSQL last held no greater one, on the clock
// of the service; 0 is never in this process's life. Once it was asked, nothing newer was answered before the process
// began, or before an earlier mark was forgotten; and what Redis holds since may be out of date, but is no step back.
type mark struct{ revision, proven int64 }

// marks are those of the items that were loaded last: two generations, of which the older one is forgotten when the
// younger one is full. Items are named by 128 bits of hash.
type marks struct {
	seeds      [2]maphash.Seed
	young, old map[[2]uint64]mark
	max        int // of a generation
}

func newMarks(bound int) marks {
	return marks{seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, young: map[[2]uint64]mark{}, max: max(1, bound/2)}
}

func (m *marks) name(k Key) (n [2]uint64) {
	for i, seed := range m.seeds {
		n[i] = bits.RotateLeft64(maphash.String(seed, string(k.Connection)), 1) ^ maphash.String(seed, string(k.Item))
	}
	return n
}

// get returns the mark, and keeps it from being forgotten soon.
func (m *marks) get(k Key) mark {
	n := m.name(k)
	if r, ok := m.young[n]; ok {
		return r
	}
	r, ok := m.old[n]
	if ok {
		m.set(n, r)
	}
	return r
}

// raise reports false when the new mark is below the one that is there.
func (m *marks) raise(k Key, to mark) bool {
	was := m.get(k)
	if to.revision < was.revision {
		return false
	}
	to.proven = max(to.proven, was.proven)
	m.set(m.name(k), to)
	return true
}

func (m *marks) set(n [2]uint64, to mark) {
	if _, known := m.young[n]; !known && len(m.young) >= m.max {
		m.old, m.young = m.young, make(map[[2]uint64]mark)
	}
	m.young[n] = to
}
