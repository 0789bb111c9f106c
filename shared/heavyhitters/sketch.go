package heavyhitters

import "container/heap"

// sketch counts the keys of a stream by the Space-Saving algorithm (Metwally, Agrawal, El Abbadi 2005): it
// has a fixed number of counters, and a new key takes over the smallest one. A count is too high by at most
// its excess, and a key that makes more than 1/size of the total is never missing.
type sketch struct {
	size     int
	total    uint64
	counters map[string]*counter
	smallest counterHeap
}

type counter struct {
	key    string
	count  uint64
	excess uint64 // of the key before, which this counter took over
	index  int    // in the heap
}

func newSketch(size int) *sketch {
	return &sketch{size: size, counters: make(map[string]*counter, size)}
}

func (s *sketch) add(key string, n uint64) {
	s.total += n
	if c, known := s.counters[key]; known {
		c.count += n
		heap.Fix(&s.smallest, c.index)
		return
	}
	if len(s.smallest) < s.size {
		c := &counter{key: key, count: n}
		s.counters[key] = c
		heap.Push(&s.smallest, c)
		return
	}
	c := s.smallest[0]
	delete(s.counters, c.key)
	c.key, c.excess = key, c.count
	c.count += n
	s.counters[key] = c
	heap.Fix(&s.smallest, 0)
}

// bound is the most that a key without a counter can have made.
func (s *sketch) bound() uint64 {
	if len(s.smallest) < s.size {
		return 0
	}
	return s.smallest[0].count
}

type counterHeap []*counter

func (h counterHeap) Len() int           { return len(h) }
func (h counterHeap) Less(i, j int) bool { return h[i].count < h[j].count }
func (h counterHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push implements heap.Interface.
func (h *counterHeap) Push(c any) {
	c.(*counter).index = len(*h)
	*h = append(*h, c.(*counter))
}

// Pop implements heap.Interface; a counter is never removed.
func (h *counterHeap) Pop() any { panic("heavyhitters: a counter is never removed") }
