package bench

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"storefront.internal/deploy/load"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/ident/decisionid"
)

// BenchmarkTenants compares recording signals for ten thousand connections, each with a key of its own, and
// for ten; they take turns.
func BenchmarkTenants(b *testing.B) {
	s := newDeployment(b)
	edge := s.edge(noQuota...)
	all := s.tenants(b, 10_000)
	var rates [2][]float64
	for round := range rounds + 1 {
		for i, who := range [][]load.Shopper{all[:10], all} {
			found, err := load.Closed(tenantLoad(edge, who), 2*turn)
			check(b, err)
			if round > 0 { // the first one fills the caches
				rates[i] = append(rates[i], found.Rate())
			}
		}
	}
	few, many := median(rates[0]), median(rates[1])
	rows.add("recording signals, cost with 10,000 connections ÷ with 10: %.2f (%.0f and %.0f req/s), edge "+
		"%.0f MiB resident", few/many, many, few, residentOf(b, edge.Pid()))
	b.ReportMetric(few/many, "10000/10")
	b.ReportMetric(0, "ns/op")
}

// tenantLoad lets each client send for its share of the connections, one after the other; when there are few
// connections, several clients send for one.
func tenantLoad(edge node, who []load.Shopper) load.Case {
	run, now := random(3), time.Now()
	var shares [shoppers][]*load.Batch
	for i := range max(len(who), shoppers) {
		share := &shares[i%shoppers]
		*share = append(*share, load.NewBatch(who[i%len(who)], fmt.Sprintf("%s%05d", run, i), now))
	}
	var next [shoppers]int
	return load.Case{
		Address: edge.address, Connections: shoppers,
		Request: func(i int) []byte {
			next[i] = (next[i] + 1) % len(shares[i])
			return shares[i][next[i]].Next()
		},
		Answer: func(_, status int, body []byte) error {
			if status != http.StatusAccepted || bytes.Count(body, []byte(`"accepted"`)) != signals {
				return fmt.Errorf("%d %s", status, body)
			}
			return nil
		},
	}
}

// tenants makes connections, each with a key and a Decision.
func (s *deployment) tenants(b *testing.B, n int) []load.Shopper {
	b.Helper()
	keys, err := decisionid.ParseKeyring(s.Settings.DecisionKeys)
	check(b, err)
	all := make([]load.Shopper, n)
	elapsed(b, 8, n, func(i int) error {
		ctx := context.Background()
		c, err := s.api.CreateConnection(ctx, fmt.Sprintf("tenant-%d", i))
		if err != nil {
			return err
		}
		key, err := s.api.IssueKey(ctx, c.ConnectionID)
		if err != nil {
			return err
		}
		all[i] = load.Shopper{
			Host: "bench", Connection: c.ConnectionID, Key: key.Secret, Item: "itm_5f1c9a7b3d2e4f600001",
			Signals:  signals,
			Decision: string(keys.Mint(ident.ConnectionID(c.ConnectionID), time.Now())),
		}
		return nil
	})
	return all
}
