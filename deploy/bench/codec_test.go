package bench

import (
	"testing"
	"time"

	"storefront.internal/deploy/load"
)

// BenchmarkCompression compares edges that compress their Kafka records in different ways; they take turns.
func BenchmarkCompression(b *testing.B) {
	s := newDeployment(b)
	var cases []*intake
	var who load.Shopper
	for _, codec := range []string{"none", "snappy", "lz4", "zstd"} {
		edge := s.edge(append(noQuota, "EDGE_KAFKA_COMPRESSION="+codec)...)
		cases = append(cases, &intake{name: codec, node: edge})
		if codec == "none" {
			who = s.shopper(edge)
		}
		first(b, edge.address, load.NewBatch(who, random(4), time.Now()))
	}
	under := s.backing()
	for round := range rounds + 1 {
		for _, c := range cases {
			c.turn(b, who, under, round > 0)
		}
	}
	for _, c := range cases {
		rows.add("recording signals, compression %-6s %8.0f req/s  %5.2f of none  CPU a request: own %s, "+
			"Kafka %s  p50 %s  p99 %s  %.0f MiB resident", c.name, median(c.rates),
			median(c.rates)/median(cases[0].rates), short(median(c.cpus)), short(median(c.kafka)),
			short(median(c.p50s)), short(median(c.p99s)),
			residentOf(b, c.Pid()))
	}
	b.ReportMetric(0, "ns/op")
}
