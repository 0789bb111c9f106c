package bench

import (
	"fmt"
	"testing"
	"time"
)

const (
	keyedSignals     = 200_000 // in one measurement; with -short a small part
	keyedConnections = 100
)

// BenchmarkKeyedRecords is the way from requests into PostgreSQL by an edge and two relays, with and without
// keyed records. The cases take turns, and all parts work at the same time.
func BenchmarkKeyedRecords(b *testing.B) {
	signals, turns := keyedSignals, rounds
	if testing.Short() {
		signals, turns = 5_000, 1
	}
	s := newDeployment(b)
	edges := []node{s.edge(noQuota...), s.edge(append(noQuota, "EDGE_KAFKA_KEYED=true")...)}
	relays := []node{s.relay(), s.relay()}
	shoppers := s.shoppers(edges[0], keyedConnections)
	names := []string{"edge", "Kafka", "relays", "PostgreSQL"}
	rates, costs := make([][]float64, len(edges)), make([][][]float64, len(edges))
	for round := range turns + 1 {
		for i, edge := range edges {
			used := func() []time.Duration {
				return []time.Duration{edge.cpu(b), cpuOf(b, brokerPid(b)),
					relays[0].cpu(b) + relays[1].cpu(b), s.postgresCPU()}
			}
			stored, before, begun := storedBy(b, relays), used(), time.Now()
			s.fill(b, edge, shoppers, signals)
			awaitStored(b, relays, stored+float64(signals))
			if round == 0 { // the first one fills the caches
				continue
			}
			rates[i] = append(rates[i], float64(signals)/time.Since(begun).Seconds())
			after := used()
			costs[i] = append(costs[i], make([]float64, len(names)))
			for j := range names {
				costs[i][len(costs[i])-1][j] = (after[j] - before[j]).Seconds() * 1e6 / float64(signals)
			}
		}
	}
	for i, name := range []string{"not keyed", "keyed"} {
		line := fmt.Sprintf("edge, Kafka and two relays, %s: %.0f signals/s, CPU a signal:", name,
			median(rates[i]))
		for j, part := range names {
			var all []float64
			for _, c := range costs[i] {
				all = append(all, c[j])
			}
			line += fmt.Sprintf(" %s %.1f µs", part, median(all))
		}
		rows.add("%s", line)
	}
	b.ReportMetric(median(rates[1])/median(rates[0]), "keyed/not")
	b.ReportMetric(0, "ns/op")
}

// storedBy is how many signals the relays have stored.
func storedBy(b *testing.B, relays []node) (n float64) {
	b.Helper()
	for _, relay := range relays {
		stored, err := metric(relay.Admin, `storefront_relay_sink_signals_total{result="stored"}`)
		check(b, err)
		n += stored
	}
	return n
}

func awaitStored(b *testing.B, relays []node, n float64) {
	b.Helper()
	for deadline := time.Now().Add(5 * time.Minute); storedBy(b, relays) < n; {
		time.Sleep(20 * time.Millisecond)
		if time.Now().After(deadline) {
			b.Fatalf("%.0f of %.0f signals are stored", storedBy(b, relays), n)
		}
	}
}
