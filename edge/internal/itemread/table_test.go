package itemread

import (
	"fmt"
	"hash/maphash"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"storefront.internal/shared/ident"
)

func numbered(n int) Key { return Key{"con_1", ident.ItemID(fmt.Sprint("itm_", n))} }

// Against a map, with few buckets and many collisions.
func TestTableIsAMap(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		table, model := newTable[int](maphash.MakeSeed(), 1<<20, 1<<20), map[int]int{}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			n := rapid.IntRange(0, 20).Draw(t, "key")
			hash := uint64(n % 3)
			switch rapid.IntRange(0, 2).Draw(t, "step") {
			case 0:
				v := rapid.Int().Draw(t, "value")
				table.put(hash, numbered(n), v, 10, 1)
				model[n] = v
			case 1:
				table.drop(hash, numbered(n))
				delete(model, n)
			}
			e := table.get(hash, numbered(n))
			if want, known := model[n]; known != (e != nil) || known && e.value != want {
				t.Fatalf("key %d: %v, want %d, %t", n, e, want, known)
			}
		}
		if table.count.Load() != int64(len(model)) || table.bytes.Load() != int64(len(model))*(entryCost+10) {
			t.Fatalf("%d entries, %d bytes of %d", table.count.Load(), table.bytes.Load(), len(model))
		}
	})
}

func TestTableIsBounded(t *testing.T) {
	t.Parallel()
	const size = 1000
	table := newTable[int](maphash.MakeSeed(), 100*(size+entryCost), size)
	hash := func(n int) uint64 { return maphash.Comparable(table.seed, n) }
	table.put(hash(-1), numbered(-1), -1, size, 1)
	for n := range 10_000 {
		table.put(hash(n), numbered(n), n, size, 1)
		if table.get(hash(-1), numbered(-1)) == nil {
			t.Fatalf("the entry that is read all the time went at %d", n)
		}
		if table.bytes.Load() > table.limit {
			t.Fatalf("%d bytes, limit %d", table.bytes.Load(), table.limit)
		}
	}
	if n := table.count.Load(); n < 50 || n > 100 {
		t.Errorf("%d entries", n)
	}
	if table.put(1, numbered(1), 1, 1<<30, 1); table.bytes.Load() > table.limit {
		t.Error("an entry that is larger than the table stayed")
	}
}

// Readers without a lock beside a writer: what is always there is always found, and whole.
func TestTableUnderConcurrency(t *testing.T) {
	t.Parallel()
	table := newTable[[2]int](maphash.MakeSeed(), 1<<20, 1<<20)
	for n := range 10 {
		table.put(uint64(n%3), numbered(n), [2]int{0, 0}, 10, 1)
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			last := [10]int{}
			for {
				for n := range 10 {
					e := table.get(uint64(n%3), numbered(n))
					if e == nil || e.value[0] != e.value[1] || e.value[0] < last[n] {
						t.Errorf("key %d: %v after %d", n, e, last[n])
						return
					}
					last[n] = e.value[0]
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	for i := range 20_000 {
		n := i % 20 // 10 to 19 come and go between them
		if n < 10 {
			table.put(uint64(n%3), numbered(n), [2]int{i, i}, 10, 1)
		} else if i%40 < 20 {
			table.put(uint64(n%3), numbered(n), [2]int{i, i}, 10, 1)
		} else {
			table.drop(uint64(n%3), numbered(n))
		}
	}
	close(stop)
	wg.Wait()
}

func TestMarks(t *testing.T) {
	t.Parallel()
	m := newMarks(20)
	five := mark{5, 7}
	if !m.raise(mine, mark{5, 0}) || m.raise(mine, mark{4, 9}) || m.get(mine).proven > 0 || !m.raise(mine, five) || !m.raise(mine, mark{5, 0}) ||
		m.get(mine) != five || m.get(Key{"con_2", "itm_1"}) != (mark{}) {
		t.Error("a mark does not rise, or falls, or is proven by itself")
	}
	for n := range 1000 {
		m.raise(numbered(n+10), mark{1, 1})
		if m.get(mine) != five { // asked for often enough to stay
			t.Fatal("a mark in use was forgotten")
		}
	}
	if n := len(m.young) + len(m.old); n > 20 {
		t.Errorf("%d marks", n)
	}
}
