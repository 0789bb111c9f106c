package deliver_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"storefront.internal/engine-relay/internal/deliver"
	"storefront.internal/shared/deliveries"
)

// BenchmarkDeliver empties a queue of b.N interactions of 400 bytes over 32 lanes to an engine on this
// machine.
func BenchmarkDeliver(b *testing.B) {
	s := newStand(b)
	var got atomic.Int64
	done := make(chan struct{})
	total := int64(b.N)
	quick := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		n := strings.Count(string(body), `"signal_id"`)
		out := []byte(`{"results":[`)
		for i := range n {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(out, `{"index":`...)
			out = strconv.AppendInt(out, int64(i), 10)
			out = append(out, `,"status":"created"}`...)
		}
		_, _ = w.Write(append(out, `]}`...))
		if got.Add(int64(n)) >= total {
			select {
			case <-done:
			default:
				close(done)
			}
		}
	}))
	defer quick.Close()
	s.stub.Close()
	s.stub.Server = quick
	padding := strings.Repeat("x", 330)
	for n := 0; n < b.N; n += 2000 {
		var batch []deliveries.Entry
		for i := range min(2000, b.N-n) {
			e := entry(i%4, i%64, n+i)
			e.Body = []byte(string(e.Body[:len(e.Body)-1]) + `,"x":"` + padding + `"}`)
			batch = append(batch, e)
		}
		s.enqueue(batch...)
	}
	b.ResetTimer()
	s.relayWith("t", func(c *deliver.Config) { c.Timeout, c.Workers = 10*time.Second, 4 })
	<-done
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "interactions/s")
	s.drained()
}
