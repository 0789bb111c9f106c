package bench

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"storefront.internal/deploy/load"
)

const (
	keyTenants = 10_000
	keyRate    = 100 // keys that are issued in a second, and as many that are revoked
	keyBacklog = 200 // keys that live until they are revoked
)

// BenchmarkKeyChanges compares recording signals for 10,000 connections, each with a key of its own, while
// keys are issued and revoked all the time and while no key changes; they take turns. It counts what the edge
// asks PostgreSQL because of the changes, and how long it takes to make the connections with their keys.
func BenchmarkKeyChanges(b *testing.B) {
	s := newDeployment(b)
	edge := s.edge(noQuota...)
	begun := time.Now()
	all := s.tenants(b, keyTenants)
	rows.add("making %d connections with a key each: %s, %.0f pushes of keys failed", keyTenants,
		time.Since(begun).Round(time.Second),
		figure(b, s.control, `storefront_control_key_pushes_total{result="failed"}`))
	found, err := load.Closed(tenantLoad(edge, all), 5*turn) // fills memory
	check(b, err)
	rate := found.Rate() / 4
	var quiet, busy, ratios []float64
	changes, lookups, emptied := 0.0, 0.0, 0.0
	for round := range rounds + 1 {
		still := s.p99(b, edge, all, rate)
		asked := figure(b, edge, `storefront_edge_key_lookups_total{source="store"}`)
		forgot := figure(b, edge, "storefront_edge_key_memory_emptied_total")
		stopChanges := s.changeKeys(b, all)
		moving := s.p99(b, edge, all, rate)
		changed := stopChanges()
		if round == 0 {
			continue
		}
		quiet, busy, ratios = append(quiet, still), append(busy, moving), append(ratios, moving/still)
		changes += float64(changed)
		lookups += figure(b, edge, `storefront_edge_key_lookups_total{source="store"}`) - asked
		emptied += figure(b, edge, "storefront_edge_key_memory_emptied_total") - forgot
	}
	rows.add("recording signals at %.0f req/s (a quarter of the most): p99 %.1f ms quiet, %.1f ms while "+
		"keys change; %.0f changes, %.3f look-ups in PostgreSQL per change, memory emptied %.0f times", rate,
		median(quiet), median(busy), changes, lookups/changes, emptied)
	rows.goal(fmt.Sprintf("p99 of recording while %d keys/s are issued and revoked ÷ quiet", keyRate),
		fmt.Sprintf("%.1f ms", median(busy)), fmt.Sprintf("%.1f ms", median(quiet)),
		fmt.Sprintf("%.2f", median(ratios)), "≤ 1.5")
	b.ReportMetric(median(ratios), "busy/quiet")
	b.ReportMetric(lookups/changes, "lookups/change")
	b.ReportMetric(0, "ns/op")
}

// p99 is the 99th percentile of recording signals at a rate, in milliseconds.
func (s *deployment) p99(b *testing.B, edge node, who []load.Shopper, rate float64) float64 {
	b.Helper()
	found, err := load.Open(tenantLoad(edge, who), rate, 3*turn)
	check(b, err)
	return found.Percentile(99).Seconds() * 1000
}

// changeKeys issues and revokes keys until the returned function is called, which returns the number of
// changes.
func (s *deployment) changeKeys(b *testing.B, who []load.Shopper) (stop func() (changes int)) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	var mu sync.Mutex
	var live [][2]string // connection and key
	changes := 0
	change := func(connection string) error {
		key, err := s.api.IssueKey(context.Background(), connection)
		if err != nil {
			return err
		}
		mu.Lock()
		live = append(live, [2]string{connection, key.APIKeyID})
		changes++
		if len(live) <= keyBacklog {
			mu.Unlock()
			return nil
		}
		oldest := live[0]
		live = live[1:]
		changes++
		mu.Unlock()
		return s.api.RevokeKey(context.Background(), oldest[0], oldest[1])
	}
	all.Go(func() {
		tick := time.NewTicker(time.Second / keyRate)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				all.Go(func() {
					if err := change(who[i%len(who)].Connection); err != nil {
						b.Error(err)
					}
				})
			}
		}
	})
	return func() int {
		cancel()
		all.Wait()
		return changes
	}
}

// figure reads one sample from a process's metrics.
func figure(b *testing.B, n node, name string) float64 {
	b.Helper()
	value, err := metric(n.Admin, name)
	check(b, err)
	return value
}
