package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"storefront.internal/deploy/democonnector/connector"
	"storefront.internal/deploy/load"
)

// BenchmarkProfile writes the profiles of an edge that records signals and that reads items to the folder
// BENCH_PROFILE. `make pgo` merges them into the profile by which the compiler optimizes the edge.
func BenchmarkProfile(b *testing.B) {
	dir := os.Getenv("BENCH_PROFILE")
	if dir == "" {
		b.Skip("SKIPPED: needs BENCH_PROFILE: use `make pgo`")
	}
	s := newDeployment(b)
	one := s.shop()
	items, err := one.deliver(one.batch(b, 0, 1), connector.Accepted)
	check(b, err)
	edge := s.edge(noQuota...)
	who := s.shopper(edge)
	first(b, edge.address, load.NewBatch(who, random(4), time.Now()))
	reads := &source{name: "memory", node: edge, items: items[:1]}
	var r fasthttp.Request
	var res fasthttp.Response
	ask(&r, edge.address, one.key, items[0])
	_, err = get(&fasthttp.Client{}, &r, &res)
	check(b, err)
	signals := intake{node: edge, resend: 1}
	for _, c := range []struct {
		name    string
		seconds int
		turn    func()
	}{
		{"edge-signals", 20, func() {
			_, err := load.Closed(signals.load(who), turn)
			check(b, err)
		}},
		{"edge-items", 5, func() { reads.turn(b, one.key, false) }},
	} {
		c.turn() // warms
		done := make(chan error, 1)
		go func() {
			what := fmt.Sprint("profile?seconds=", c.seconds)
			done <- fetch(edge, what, filepath.Join(dir, c.name+".pprof"))
		}()
		for running := true; running; {
			c.turn()
			select {
			case err := <-done:
				check(b, err)
				running = false
			default:
			}
		}
	}
	b.ReportMetric(0, "ns/op")
}
