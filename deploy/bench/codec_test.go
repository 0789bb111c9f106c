package bench

import (
	"testing"
	"time"

	"storefront.internal/deploy/load"
)

// BenchmarkCompression compares edges that compress their Kafka records in different ways; they take turns.
func BenchmarkCompression(b *testing.B) {
	compareSettings(b, "compression", "EDGE_KAFKA_COMPRESSION", "none", "snappy", "lz4", "zstd")
}

// BenchmarkRecordVersion compares edges that write their Kafka records in version 1 and in version 2; they
// take turns.
func BenchmarkRecordVersion(b *testing.B) {
	compareSettings(b, "record version", "EDGE_KAFKA_RECORD_VERSION", "1", "2")
}

// compareSettings adds a row for each value of a variable of edge.
func compareSettings(b *testing.B, what, variable string, values ...string) {
	b.Helper()
	s := newDeployment(b)
	var cases []*intake
	var who load.Shopper
	for i, value := range values {
		edge := s.edge(append(noQuota, variable+"="+value)...)
		cases = append(cases, &intake{name: value, node: edge})
		if i == 0 {
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
		rows.add("recording signals, %s %-6s %8.0f req/s  %5.3f of %s  CPU a request: own %s, "+
			"Redis %s, Kafka %s  p50 %s  p99 %s  %.0f MiB resident", what, c.name, median(c.rates),
			median(c.rates)/median(cases[0].rates), values[0], short(median(c.cpus)), short(median(c.redis)),
			short(median(c.kafka)), short(median(c.p50s)), short(median(c.p99s)), residentOf(b, c.Pid()))
	}
	b.ReportMetric(0, "ns/op")
}
