package bench

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"storefront.internal/deploy/democonnector/connector"
	"storefront.internal/deploy/local/project"
	"storefront.internal/deploy/local/redis"
)

const (
	readers = 32
	turn    = time.Second // of one case in a round
	rounds  = 5
	many    = 10_000 // items: far more than an edge with the least memory holds
)

// source is where the response to reading an item comes from.
type source struct {
	node
	name                    string
	items                   []string
	rates, cpus, p50s, p99s []float64
}

// BenchmarkReadItem reads items from each source and the same bytes from a bare handler; they take turns.
func BenchmarkReadItem(b *testing.B) {
	path, found := redis.Find()
	if !found {
		b.Skip("SKIPPED: needs redis-server")
	}
	s := newDeployment(b)
	s.relay()
	one := s.shop()
	var items []string
	for first := 0; first < many; first += connector.MaxBatch {
		ids, err := one.deliver(one.batch(b, first, 1), connector.Accepted)
		check(b, err)
		items = append(items, ids...)
	}
	edge, small := s.edge(), s.edge("EDGE_ITEM_MEMORY_BYTES=1048576", "EDGE_ITEM_TTL=1s")
	var r fasthttp.Request
	var res fasthttp.Response
	ask(&r, edge.address, one.key, items[0])
	_, err := get(&fasthttp.Client{}, &r, &res)
	check(b, err)
	sources := []*source{
		{name: "bare handler", node: s.static(res.Body()), items: items[:1]},
		{name: "memory", node: edge, items: items[:1]},
		{name: "Redis", node: small, items: items},
		{name: "PostgreSQL", node: s.withoutRedis(path), items: items},
	}
	if base, found := s.baseEdge(); found {
		sources = append(sources, &source{name: "memory, edge of the base", node: base, items: items[:1]})
	}
	for round := range rounds + 1 {
		for _, from := range sources {
			from.turn(b, one.key, round > 0) // the first one fills what has to be full
		}
	}
	for _, from := range sources {
		ratio := median(from.rates) / median(sources[0].rates)
		rows.add("reading an item, %-13s %8.0f req/s  %5.3f of the bare handler  CPU %6s a request  p50 "+
			"%s  p99 %s", from.name, median(from.rates),
			ratio, short(median(from.cpus)), short(median(from.p50s)), short(median(from.p99s)))
		if from == sources[1] {
			rows.goal("reading an item from process memory ÷ bare handler",
				fmt.Sprintf("%.0f req/s", median(from.rates)),
				fmt.Sprintf("%.0f req/s", median(sources[0].rates)),
				fmt.Sprintf("%.3f", ratio), "≥ 0.75")
		}
		b.ReportMetric(ratio, strings.ReplaceAll(from.name, " ", "-")+"/bare")
	}
	b.ReportMetric(0, "ns/op") // one run is one measurement, longer than a benchmark's second
}

func short(nanoseconds float64) time.Duration {
	return time.Duration(nanoseconds).Round(time.Microsecond)
}

// withoutRedis starts an edge whose Redis ends.
func (s *deployment) withoutRedis(path string) node {
	port, err := project.ClaimPort()
	check(s.b, err)
	server, err := redis.Start(context.Background(),
		redis.Config{Path: path, Dir: s.b.TempDir(), Port: port, Log: io.Discard})
	check(s.b, err)
	defer server.Kill()
	return s.edge("EDGE_ITEM_MEMORY_BYTES=1048576", "EDGE_ITEM_TTL=1s", "EDGE_REDIS_ADDRS="+server.Addr())
}
