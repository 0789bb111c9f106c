// Package docs holds the documents of one kind of one generated store: a base that is generated again on
// every read, and the documents that a person or a test changed. It owns ids, order and the time of the last
// change; the shape of a document is the provider's.
package docs

import (
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"
)

// Doc is one document as the provider answers it.
type Doc struct {
	ID      int64
	Updated time.Time
	JSON    json.RawMessage
}

// Base generates documents by pure functions of an id, so that a store costs memory only for changed
// documents.
type Base struct {
	First   int64 // the ids are First to First+Count-1
	Count   int
	JSON    func(id int64) []byte // any id: a document that is put under a new id starts from this
	Updated func(id int64) time.Time

	UpdatedAt  string // the member with the time of the last change
	FormatTime func(time.Time) string
	ParseTime  func(string) (time.Time, error)
	Open       bool     // every id exists that was not deleted, though none is listed
	Lists      []string // members whose elements are documents with an id of their own
}

// Table is the documents of one kind of one store.
type Table struct {
	base Base

	mu      sync.RWMutex
	ids     []int64 // ascending
	changed map[int64]Doc
	gone    map[int64]bool // of an open base
}

// NewTable makes a table with the documents of its base.
func NewTable(base Base) *Table {
	ids := make([]int64, base.Count)
	for i := range ids {
		ids[i] = base.First + int64(i)
	}
	return &Table{base: base, ids: ids, changed: map[int64]Doc{}, gone: map[int64]bool{}}
}

// Clone returns an independent copy.
func (t *Table) Clone() *Table {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return &Table{
		base:    t.base,
		ids:     slices.Clone(t.ids),
		changed: maps.Clone(t.changed),
		gone:    maps.Clone(t.gone),
	}
}

// Get returns one document.
func (t *Table) Get(id int64) (Doc, bool) {
	t.mu.RLock()
	_, there := slices.BinarySearch(t.ids, id)
	there = there || t.base.Open && !t.gone[id]
	d, changed := t.changed[id]
	t.mu.RUnlock()
	switch {
	case !there:
		return Doc{}, false
	case changed:
		return d, true
	}
	return t.fromBase(id), true
}

func (t *Table) fromBase(id int64) Doc {
	return Doc{ID: id, Updated: t.base.Updated(id), JSON: t.base.JSON(id)}
}

func (t *Table) put(d Doc) (created bool) {
	at, there := slices.BinarySearch(t.ids, d.ID)
	if !there {
		t.ids = slices.Insert(t.ids, at, d.ID)
	}
	t.changed[d.ID] = d
	delete(t.gone, d.ID)
	return !there
}

// Delete removes a document and reports whether there was one.
func (t *Table) Delete(id int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	at, there := slices.BinarySearch(t.ids, id)
	if there {
		t.ids = slices.Delete(t.ids, at, at+1)
	}
	delete(t.changed, id)
	t.gone[id] = true
	return there
}

// IDs returns the ids for which keep is true, ascending; a nil keep keeps all.
func (t *Table) IDs(keep func(id int64, updated time.Time) bool) []int64 {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if keep == nil {
		return slices.Clone(t.ids)
	}
	var ids []int64
	for _, id := range t.ids {
		updated := t.changed[id].Updated
		if updated.IsZero() {
			updated = t.base.Updated(id)
		}
		if keep(id, updated) {
			ids = append(ids, id)
		}
	}
	return ids
}

// Pick returns the documents of those ids that still exist.
func (t *Table) Pick(ids []int64) []Doc {
	docs := make([]Doc, 0, len(ids))
	for _, id := range ids {
		if d, ok := t.Get(id); ok {
			docs = append(docs, d)
		}
	}
	return docs
}
