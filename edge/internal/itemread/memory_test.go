package itemread

import (
	"fmt"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"storefront.internal/shared/ident"
)

func numbered(n int) Key { return Key{"con_1", ident.ItemID(fmt.Sprint("itm_", n))} }

// Against a map of versions: what memory holds of an item, and the bytes that it counts.
func TestMemoryIsAMap(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		memory, model := newMemory(1<<20), map[int]int64{}
		for revision := range rapid.Int64Range(1, 200).Draw(t, "steps") {
			n := rapid.IntRange(0, 20).Draw(t, "key")
			switch rapid.IntRange(0, 2).Draw(t, "step") {
			case 0:
				memory.put(numbered(n), Version{Revision: revision + 1, Body: body(revision + 1)}, 1, 10)
				model[n] = revision + 1
			case 1:
				memory.putDeleted(numbered(n), revision+1, 1, 10)
				delete(model, n)
			}
			d, _ := memory.get(numbered(n), 1)
			if want, known := model[n]; known != (d.doc != nil) || known && d.doc.Revision != want {
				t.Fatalf("key %d: %v, want %d, %t", n, d, want, known)
			}
		}
		var want int64
		for n := range model {
			d, _ := memory.get(numbered(n), 1)
			want += d.doc.size()
		}
		if count, bytes := memory.usage(); count != len(model) || bytes != want {
			t.Fatalf("%d entries of %d, %d bytes of %d", count, len(model), bytes, want)
		}
	})
}

func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	size := NewDocument("itm_10000", Version{Revision: 1, Body: body(1)}).size()
	memory := newMemory(100 * size)
	put := func(n int) { memory.put(numbered(n), Version{Revision: 1, Body: body(1)}, 1, 10) }
	put(-1)
	for n := range 10_000 {
		put(n)
		if d, _ := memory.get(numbered(-1), 1); d.doc == nil {
			t.Fatalf("the document that is read all the time went at %d", n)
		}
		if _, bytes := memory.usage(); bytes > memory.maxBytes {
			t.Fatalf("%d bytes, limit %d", bytes, memory.maxBytes)
		}
	}
	if n, _ := memory.usage(); n < 50 || n > 101 {
		t.Errorf("%d documents", n)
	}
	memory.put(mine, Version{Revision: 1, Body: make([]byte, memory.maxBytes)}, 1, 10)
	if _, bytes := memory.usage(); bytes > memory.maxBytes {
		t.Error("a document that is larger than the memory stayed")
	}
}

// Readers beside a writer: a document that stays is always found, and its revision never falls.
func TestMemoryUnderConcurrency(t *testing.T) {
	t.Parallel()
	memory := newMemory(1 << 20)
	put := func(n int, revision int64) {
		memory.put(numbered(n), Version{Revision: revision, Body: []byte("{}")}, 1, 10)
	}
	for n := range 10 {
		put(n, 1)
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			last := [10]int64{}
			for {
				for n := range 10 {
					d, _ := memory.get(numbered(n), 1)
					if d.doc == nil || d.doc.Revision < last[n] {
						t.Errorf("key %d: %v after %d", n, d.doc, last[n])
						return
					}
					last[n] = d.doc.Revision
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	for i := range int64(20_000) {
		n := int(i % 20) // 10 to 19 come and go between them
		if n < 10 || i%40 < 20 {
			put(n, i+1)
		} else {
			memory.putDeleted(numbered(n), i+1, 1, 10)
		}
	}
	close(stop)
	wg.Wait()
}

func TestHighWaterMarks(t *testing.T) {
	t.Parallel()
	m := newMemory(1 << 20)
	m.marks.Resize(20)
	five := highWaterMark{5, 7}
	raise := func(revision,
		verifiedAt int64) bool {
		return m.raise(mine, highWaterMark{revision, verifiedAt})
	}
	if !raise(5, 0) || raise(4, 9) || m.mark(mine).verifiedAt > 0 || !raise(5, 7) || !raise(5, 0) ||
		m.mark(mine) != five || m.mark(Key{"con_2", "itm_1"}) != (highWaterMark{}) {
		t.Error("a mark does not rise, or falls, or is verified by itself")
	}
	for n := range 1000 {
		m.raise(numbered(n+10), highWaterMark{1, 1})
		if m.mark(mine) != five {
			t.Fatal("a mark in use was forgotten")
		}
	}
	if n := m.marks.Len(); n > 20 {
		t.Errorf("%d marks", n)
	}
}
