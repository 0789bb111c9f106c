package postgres_test

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"storefront.internal/control/internal/observation"
)

// heapPeak returns by how many bytes what the collector finds alive exceeds what it found before, at most,
// while f runs, and the same with garbage.
func heapPeak(f func()) (alive, all uint64) {
	defer debug.SetGCPercent(debug.SetGCPercent(10))
	read := func() (alive, all uint64) {
		samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"},
			{Name: "/memory/classes/heap/objects:bytes"}}
		metrics.Read(samples)
		return samples[0].Value.Uint64(), samples[1].Value.Uint64()
	}
	runtime.GC()
	aliveBefore, allBefore := read()
	done, sampled := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(sampled)
		for {
			nowAlive, nowAll := read()
			alive, all = max(alive, nowAlive), max(all, nowAll)
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	f()
	close(done)
	<-sampled
	return max(alive, aliveBefore) - aliveBefore, max(all, allBefore) - allBefore
}

// bodyOf returns a body of at least size bytes, made of products with these variants and members of an item.
func bodyOf(size int, variants, item string) []byte {
	var body strings.Builder
	body.WriteString(`{"observations":[`)
	for n := 0; body.Len() < size && n < 500; n++ {
		if n > 0 {
			body.WriteByte(',')
		}
		fmt.Fprintf(&body, `{"entity":"product","external_id":"p%d","revision":1,"document":{"item":{"title":{"en":"x"},"status":"active"%s},"variants":[%s]}}`, n, item, variants)
	}
	body.WriteString(`]}`)
	return []byte(body.String())
}

func times(n int, element func(i int) string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = element(i)
	}
	return strings.Join(all, ",")
}

// TestDeliveryMemory delivers bodies of 7 MiB whose elements are small as text and large in memory. It is not
// parallel, since it measures the heap.
func TestDeliveryMemory(t *testing.T) {
	const (
		size    = 7 << 20
		variant = `{"external_id":"v"}`
	)
	attributes := times(20, func(i int) string {
		return fmt.Sprintf(`{"external_id":"v%d","attributes":[%s]}`, i, times(1000, func(int) string {
			return `{"name":{"aa":""},"value":{"aa":""}}`
		}))
	})
	s := newShop(t)
	f := func(name string, factor float64, body []byte) {
		t.Helper()
		source := s.connect(name)
		var results []observation.Result
		var err error
		alive, all := heapPeak(func() { results, err = s.service.Deliver(t.Context(), source, body) })
		if err != nil {
			t.Fatal(err)
		}
		times := func(bytes uint64) float64 { return 1 + float64(bytes)/float64(len(body)) }
		t.Logf("%s: %d elements, the first is %s, %d bytes: %.1f times the body, %.1f with garbage",
			name, len(results), results[0].Status, len(body), times(alive), times(all))
		if times(alive) > factor {
			t.Errorf("%s: the work on a body of %d bytes needs %d", name, len(body), alive)
		}
	}
	f("attributes", 6, bodyOf(size, attributes, ""))
	f("values", 6, bodyOf(size/2, variant, `,"more":[0`+strings.Repeat(",0", 1<<20)+`]`))
	f("text", 6, bodyOf(size, variant, `,"description":{`+times(4, func(i int) string {
		return fmt.Sprintf(`"a%c":"%s"`, 'a'+i, strings.Repeat("x", 900<<10))
	})+`}`))
}
