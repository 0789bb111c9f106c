// Package heavyhitters finds the keys that make most of a load, for example the connections that send most
// signals, in bounded memory and without a lock that all requests share. It owns the counting, the windows
// and the answer of /debug/top; it does not know what is counted.
package heavyhitters

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// Window is the time after which the counts begin again.
	Window = 5 * time.Minute

	shards = 8   // which are added up when somebody asks
	size   = 256 // counters of each load in each shard and window
)

// Tracker counts several loads by key, in windows: the present one and the one before. A nil Tracker counts
// nothing.
type Tracker struct {
	loads  []string
	now    func() time.Time
	shards [shards]shard
}

// shard counts a random part of the requests, so that requests of one key do not wait for each other.
type shard struct {
	mu       sync.Mutex
	ends     time.Time // of the present window
	present  []*sketch // by load
	previous []*sketch
	_        [64]byte // keeps the next shard's lock out of this one's cache line
}

// New returns a Tracker of the named loads.
func New(now func() time.Time, loads ...string) *Tracker {
	t := &Tracker{loads: loads, now: now}
	ends := windowEnd(now())
	for i := range t.shards {
		s := &t.shards[i]
		s.ends, s.present, s.previous = ends, t.sketches(), t.sketches()
	}
	return t
}

// windowEnd is the same for all shards and processes.
func windowEnd(now time.Time) time.Time { return now.Truncate(Window).Add(Window) }

func (t *Tracker) sketches() []*sketch {
	all := make([]*sketch, len(t.loads))
	for i := range all {
		all[i] = newSketch(size)
	}
	return all
}

// Add adds to the loads of a key, in the order of New. Zeros cost nothing.
func (t *Tracker) Add(now time.Time, key string, amounts ...int) {
	if t == nil || key == "" {
		return
	}
	s := t.lock()
	defer s.mu.Unlock()
	t.turn(s, now)
	for i, n := range amounts {
		if n > 0 {
			s.present[i].add(key, uint64(n))
		}
	}
}

// lock locks a shard, if possible one that nobody uses.
func (t *Tracker) lock() *shard {
	first := rand.IntN(shards)
	for i := range shards {
		if s := &t.shards[(first+i)%shards]; s.mu.TryLock() {
			return s
		}
	}
	s := &t.shards[first]
	s.mu.Lock()
	return s
}

// turn begins a new window when the present one has ended.
func (t *Tracker) turn(s *shard, now time.Time) {
	if now.Before(s.ends) {
		return
	}
	s.previous = t.sketches()
	if now.Before(s.ends.Add(Window)) {
		s.previous = s.present
	}
	s.present, s.ends = t.sketches(), windowEnd(now)
}

// Load is a load in a window.
type Load struct {
	Load  string `json:"load"`
	Total uint64 `json:"total"`
	Top   []Key  `json:"top"`
}

// Key is a key of a load. Its true count is at least Count - Excess and at most Count.
type Key struct {
	Key    string  `json:"connection_id"`
	Count  uint64  `json:"count"`
	Excess uint64  `json:"excess"`
	Share  float64 `json:"share"` // of the load's total
}

// windows returns the n greatest keys of each load, in the present window and in the one before.
func (t *Tracker) windows(now time.Time, n int) (present, previous []Load) {
	sums := [2][]sum{make([]sum, len(t.loads)), make([]sum, len(t.loads))}
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		t.turn(s, now)
		for load := range t.loads {
			sums[0][load].add(s.present[load])
			sums[1][load].add(s.previous[load])
		}
		s.mu.Unlock()
	}
	return t.top(sums[0], n), t.top(sums[1], n)
}

func (t *Tracker) top(sums []sum, n int) []Load {
	all := make([]Load, len(sums))
	for i, s := range sums {
		all[i] = Load{Load: t.loads[i], Total: s.total, Top: s.top(n)}
	}
	return all
}

// sum adds up the sketches of the shards.
type sum struct {
	total, bound uint64
	keys         map[string]Key
}

func (s *sum) add(k *sketch) {
	if s.keys == nil {
		s.keys = map[string]Key{}
	}
	// A key without a counter here may have made as much as the bound.
	for name, known := range s.keys {
		if k.counters[name] == nil {
			known.Count, known.Excess = known.Count+k.bound(), known.Excess+k.bound()
			s.keys[name] = known
		}
	}
	for name, c := range k.counters {
		known, is := s.keys[name]
		if !is {
			known = Key{Key: name, Count: s.bound, Excess: s.bound}
		}
		known.Count, known.Excess = known.Count+c.count, known.Excess+c.excess
		s.keys[name] = known
	}
	s.total, s.bound = s.total+k.total, s.bound+k.bound()
}

func (s *sum) top(n int) []Key {
	all := make([]Key, 0, len(s.keys))
	for _, k := range s.keys {
		k.Count = min(k.Count, s.total)
		k.Share = float64(k.Count-min(k.Excess, k.Count)) / float64(s.total)
		all = append(all, k)
	}
	slices.SortFunc(all, func(a, b Key) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Key, b.Key))
	})
	return all[:min(n, len(all))]
}

// Register adds a gauge with the share of the greatest key of each load in the last whole window. It names no
// key.
func (t *Tracker) Register(r prometheus.Registerer, name string) {
	r.MustRegister(&shares{tracker: t, desc: prometheus.NewDesc(name,
		"Share of the connection that makes most of a load, in the last whole five minutes; 0 without "+
			"load. /debug/top of the operations port names it.", []string{"load"}, nil)})
}

type shares struct {
	tracker *Tracker
	desc    *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (s *shares) Describe(ch chan<- *prometheus.Desc) { ch <- s.desc }

// Collect implements prometheus.Collector.
func (s *shares) Collect(ch chan<- prometheus.Metric) {
	_, previous := s.tracker.windows(s.tracker.now(), 1)
	for _, l := range previous {
		share := 0.0
		if len(l.Top) > 0 {
			share = l.Top[0].Share
		}
		ch <- prometheus.MustNewConstMetric(s.desc, prometheus.GaugeValue, share, l.Load)
	}
}
