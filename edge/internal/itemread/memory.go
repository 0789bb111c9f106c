package itemread

import (
	"hash/maphash"
	"math/bits"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// memory is what this process remembers of items: documents, whether items exist, and the high-water marks
// below which no answer may fall. A document in memory is never older than its item's mark. All times are of
// the service's clock.
type memory struct {
	mu        sync.Mutex
	documents *simplelru.LRU[Key, cachedDocument]
	bytes     int64 // of the documents
	maxBytes  int64
	existence *simplelru.LRU[Key, cachedExistence]
	marks     *simplelru.LRU[markID, highWaterMark]
	seeds     [2]maphash.Seed // of the names of marks
}

type cachedDocument struct {
	doc   *Document
	until int64
	stale bool  // its time was prolonged because no store answered
	fresh int64 // the end of its time, without what it was prolonged by
}

type cachedExistence struct {
	exists bool
	until  int64
}

// highWaterMark is the greatest revision that was answered of an item, and when PostgreSQL last confirmed
// that it has no greater one; 0 is never in this process's life. Before the first confirmation an earlier
// process may have answered a newer version than Redis holds. After it, an old version in Redis is out of
// date, but not older than any answer.
type highWaterMark struct{ revision, verifiedAt int64 }

// markID names an item by 128 bits of hash, so that marks are small.
type markID [2]uint64

// The bounds of what memory holds beside documents, some 8 and 27 MB.
const (
	maxExistence = 32_768
	maxMarks     = 200_000
)

// entryOverhead is about what an entry takes beside the document: list and map entry, the texts of the key.
const entryOverhead = 256

func newMemory(maxBytes int64) *memory {
	m := &memory{maxBytes: maxBytes, seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}}
	evicted := func(_ Key, d cachedDocument) { m.bytes -= d.doc.size() }
	m.documents, _ = simplelru.NewLRU(int(maxBytes/entryOverhead)+1, evicted) // fails only for a size of 0
	m.existence, _ = simplelru.NewLRU[Key, cachedExistence](maxExistence, nil)
	m.marks, _ = simplelru.NewLRU[markID, highWaterMark](maxMarks, nil)
	return m
}

// get returns the document, which may be past its time, and whether the item is known to exist or not. The
// zero values are past their time.
func (m *memory) get(k Key, now int64) (d cachedDocument, e cachedExistence) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if d, _ = m.documents.Get(k); now >= d.until {
		e, _ = m.existence.Get(k)
	}
	return d, e
}

// mark returns the item's mark; the zero one when none is remembered.
func (m *memory) mark(k Key) highWaterMark {
	m.mu.Lock()
	defer m.mu.Unlock()
	mark, _ := m.marks.Get(m.markID(k))
	return mark
}

// put remembers a version, or reports false when it is older than the mark. It returns the document that
// stands for the version: one that is in memory already keeps its compressed copy.
func (m *memory) put(k Key, v Version, verifiedAt, until int64) (*Document, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.raise(k, highWaterMark{v.Revision, verifiedAt}) {
		return nil, false
	}
	m.existence.Remove(k)
	if d, ok := m.documents.Peek(k); ok && d.doc.Revision == v.Revision {
		m.documents.Add(k, cachedDocument{doc: d.doc, until: until, fresh: until})
		return d.doc, true
	}
	doc := NewDocument(k.Item, v)
	m.documents.Remove(k)
	m.documents.Add(k, cachedDocument{doc: doc, until: until, fresh: until})
	for m.bytes += doc.size(); m.bytes > m.maxBytes; {
		m.documents.RemoveOldest()
	}
	return doc, true
}

// putDeleted remembers that the item does not exist since the revision; revision 0 means that it never
// existed.
func (m *memory) putDeleted(k Key, revision, verifiedAt, until int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if revision > 0 && !m.raise(k, highWaterMark{revision, verifiedAt}) {
		return false
	}
	m.documents.Remove(k)
	m.existence.Add(k, cachedExistence{until: until})
	return true
}

// putExists remembers whether an item exists, from a look-up that returned no revision. An item that was
// answered does not become missing by it.
func (m *memory) putExists(k Key, exists bool, until int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if mark, _ := m.marks.Get(m.markID(k)); exists || mark.revision == 0 {
		m.existence.Add(k, cachedExistence{exists: exists, until: until})
	}
}

// serveStale returns the document whatever its time, and prolongs its time to until, so that readers wait for
// stores that do not answer only once in a while. It returns no document when there is none.
func (m *memory) serveStale(k Key, until int64) cachedDocument {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, ok := m.documents.Get(k)
	if ok && d.until < until {
		m.documents.Add(k, cachedDocument{doc: d.doc, until: until, stale: true, fresh: d.fresh})
	}
	return d
}

// invalidate ends the time of what is older than the revision.
func (m *memory) invalidate(k Key, revision int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if d, ok := m.documents.Peek(k); ok && d.doc.Revision < revision {
		m.documents.Add(k, cachedDocument{doc: d.doc, fresh: d.fresh})
	}
	if mark, _ := m.marks.Get(m.markID(k)); mark.revision < revision {
		m.existence.Remove(k)
	}
}

// raise sets the mark, or reports false when the present one is higher. The mutex is held.
func (m *memory) raise(k Key, to highWaterMark) bool {
	id := m.markID(k)
	was, _ := m.marks.Get(id)
	if to.revision < was.revision {
		return false
	}
	to.verifiedAt = max(to.verifiedAt, was.verifiedAt)
	m.marks.Add(id, to)
	return true
}

func (m *memory) markID(k Key) (id markID) {
	for i, seed := range m.seeds {
		id[i] = bits.RotateLeft64(maphash.String(seed, string(k.Connection)), 1) ^ maphash.String(seed,
			string(k.Item))
	}
	return id
}

// usage returns the documents in memory and their bytes.
func (m *memory) usage() (documents int, bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.documents.Len(), m.bytes
}
