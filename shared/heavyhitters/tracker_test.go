package heavyhitters

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"storefront.internal/shared/testkit"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// 10,000 keys with a Zipf tail, from many goroutines: the greatest keys are found in order, and each true
// count lies within what is said of it.
func TestTheGreatestKeysAreFound(t *testing.T) {
	t.Parallel()
	tr := New(func() time.Time { return noon }, "signals", "bytes")
	truth := make([]uint64, 10_000)
	var mu sync.Mutex
	var all sync.WaitGroup
	for seed := range uint64(4) {
		all.Go(func() {
			keys := rand.NewZipf(rand.New(rand.NewPCG(seed, 1)), 1.2, 1, uint64(len(truth)-1))
			own := make([]uint64, len(truth))
			for range 50_000 {
				key := keys.Uint64()
				own[key] += 3
				tr.Add(noon, name(key), 3, 0)
			}
			mu.Lock()
			defer mu.Unlock()
			for i, n := range own {
				truth[i] += n
			}
		})
	}
	all.Wait()
	present, previous := tr.windows(noon, 100)
	if len(previous[0].Top) != 0 || len(present[1].Top) != 0 || present[0].Total != 600_000 {
		t.Fatalf("%+v %+v", present, previous)
	}
	for i, k := range present[0].Top {
		var key uint64
		if _, err := fmt.Sscanf(k.Key, "con_%d", &key); err != nil {
			t.Fatal(err)
		}
		if truth[key] > k.Count || truth[key] < k.Count-k.Excess {
			t.Errorf("%s: %d, said to be %d with an excess of %d", k.Key, truth[key], k.Count, k.Excess)
		}
		if i < 10 && key != uint64(i) {
			t.Errorf("place %d is %s", i, k.Key)
		}
	}
}

func name(key uint64) string { return fmt.Sprintf("con_%05d", key) }

// However many keys there are, the counters are as many.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	tr := New(func() time.Time { return noon }, "signals")
	for key := range uint64(100_000) {
		tr.Add(noon, name(key), 1)
	}
	for i := range tr.shards {
		if s := tr.shards[i].present[0]; len(s.counters) > size || len(s.smallest) > size {
			t.Errorf("%d counters in a heap of %d", len(s.counters), len(s.smallest))
		}
	}
}

func TestWindowsTurn(t *testing.T) {
	t.Parallel()
	now := noon
	tr := New(func() time.Time { return now }, "signals")
	tr.Add(now, "con_a", 3)
	tr.Add(now, "con_b", 1)
	gauge := func() string {
		r := prometheus.NewRegistry()
		tr.Register(r, "top_share")
		for _, want := range []string{"0", "0.75"} {
			if testutil.GatherAndCompare(r, strings.NewReader(fmt.Sprintf(
				"# HELP top_share Share of the connection that makes most of a load, in the last whole five "+
					"minutes; 0 without load. /debug/top of the operations port names it.\n"+
					"# TYPE top_share gauge\ntop_share{load=\"signals\"} %s\n", want))) == nil {
				return want
			}
		}
		return "?"
	}
	for _, tc := range []struct {
		after time.Duration
		want  string
	}{{Window - 1, "0"}, {Window, "0.75"}, {2*Window - 1, "0.75"}, {2 * Window, "0"}} {
		if now = noon.Add(tc.after); gauge() != tc.want {
			t.Errorf("after %s the share is %s, want %s", tc.after, gauge(), tc.want)
		}
	}
}

func TestHandler(t *testing.T) {
	t.Parallel()
	tr := New(func() time.Time { return noon }, "signals", "refused")
	for i := range uint64(50) {
		tr.Add(noon, name(i), int(i), 0)
	}
	tr.Add(noon, "", 9, 9) // no key, no count
	(*Tracker)(nil).Add(noon, "con_a", 1)
	for query, want := range map[string]int{"": 20, "?n=3": 3, "?n=0": 0, "?n=x": 0, "?n=101": 0} {
		w := httptest.NewRecorder()
		tr.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/debug/top"+query, nil))
		if want == 0 {
			if w.Code != 400 {
				t.Errorf("%s: %d", query, w.Code)
			}
			continue
		}
		var got map[string]window
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		top := got["present_window"].Loads[0].Top
		if len(top) != want || top[0].Key != "con_00049" || top[0].Count != 49 {
			t.Errorf("%s: %s", query, w.Body)
		}
	}
}

func TestMetric(t *testing.T) {
	t.Parallel()
	testkit.CheckMetrics(t, func(r prometheus.Registerer) {
		New(time.Now, "signals").Register(r, "storefront_edge_top_connection_share")
	})
}

// BenchmarkAdd is what a request pays: two loads of one of 10,000 keys.
func BenchmarkAdd(b *testing.B) {
	tr := New(time.Now, "accepted", "refused", "bytes")
	keys := make([]string, 10_000)
	for i := range keys {
		keys[i] = name(uint64(i))
	}
	now := time.Now()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		zipf := rand.NewZipf(rand.New(rand.NewPCG(1, rand.Uint64())), 1.2, 1, uint64(len(keys)-1))
		drawn := make([]string, 1<<16)
		for i := range drawn {
			drawn[i] = keys[zipf.Uint64()]
		}
		for i := 0; pb.Next(); i++ {
			tr.Add(now, drawn[i%len(drawn)], 10, 0, 4000)
		}
	})
}
