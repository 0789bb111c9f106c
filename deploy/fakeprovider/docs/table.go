// Package docs holds the documents of one kind of one generated store: a base that a seed makes anew on every look, and over it what
// a person or a test changed. It owns ids, order and the time of the last change; it knows no provider's shape beyond the names of
// the members that hold that time.
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

// Base is what a seed makes: pure functions of an id, so that a store costs memory only for what was changed.
type Base struct {
	First   int64 // the ids are First to First+Count-1
	Count   int
	JSON    func(id int64) []byte // any id: a document that is put under a new id starts from this
	Updated func(id int64) time.Time

	Stamps []string // members with the time of the last change; the first is the one that is read
	Format func(time.Time) string
	Parse  func(string) (time.Time, error)
	Open   bool     // every id is there that was not deleted, though none is listed
	Lists  []string // members whose elements are documents with an id of their own
}

// Table is the documents of one kind of one store.
type Table struct {
	base Base

	mu      sync.RWMutex
	ids     []int64 // ascending
	changed map[int64]Doc
	gone    map[int64]bool // of an open base
}

// NewTable makes a table that answers its base.
func NewTable(base Base) *Table {
	ids := make([]int64, base.Count)
	for i := range ids {
		ids[i] = base.First + int64(i)
	}
	return &Table{base: base, ids: ids, changed: map[int64]Doc{}, gone: map[int64]bool{}}
}

// Clone is a table of its own with what this one holds.
func (t *Table) Clone() *Table {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return &Table{base: t.base, ids: slices.Clone(t.ids), changed: maps.Clone(t.changed), gone: maps.Clone(t.gone)}
}

// Get answers one document.
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

// Put stores a document as it is.
func (t *Table) Put(d Doc) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.put(d)
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

// Delete takes a document away and says whether there was one.
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

// IDs are the ids of what keep wants, ascending; a nil keep wants all.
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

// Pick answers the documents of ids that are still there.
func (t *Table) Pick(ids []int64) []Doc {
	docs := make([]Doc, 0, len(ids))
	for _, id := range ids {
		if d, ok := t.Get(id); ok {
			docs = append(docs, d)
		}
	}
	return docs
}

// Array joins JSON texts to one array, without looking into them again.
func Array(texts []json.RawMessage) []byte {
	out := []byte{'['}
	for i, text := range texts {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, text...)
	}
	return append(out, ']')
}
