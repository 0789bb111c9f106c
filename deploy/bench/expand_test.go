package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"storefront.internal/deploy/democonnector/connector"
	"storefront.internal/deploy/load"
)

const (
	shelf      = 8   // items of a recommendation
	shelfRate  = 500 // recommendations a second
	shelfConns = 64
)

// BenchmarkExpandedItems compares recommendations with `expand: ["item"]`, whose items are in the memory of
// the edge, and without; they take turns at a fixed rate.
func BenchmarkExpandedItems(b *testing.B) {
	s := newDeployment(b)
	engine := newEngine(b, s.Settings.EngineToken)
	s.Settings.EngineURL, s.Settings.EngineSecret = engine.url, s.Settings.EngineToken
	one := s.shop()
	items, err := one.deliver(one.batch(b, 0, 1), connector.Accepted)
	check(b, err)
	engine.recommends(b, items[:shelf])
	edge := s.edge(noQuota...)
	plain, expanded := one.recommendation(edge, ``), one.recommendation(edge, `,"expand":["item"]`)
	for time.Sleep(time.Second); !whole(b, edge, expanded); time.Sleep(100 * time.Millisecond) {
		b.Log("not all items are in memory") // without a limit: the benchmark has one
	}
	var p50s, p99s [2][]float64
	for round := range rounds + 1 {
		for i, request := range [][]byte{plain, expanded} {
			found, err := load.Open(load.Case{Address: edge.address, Connections: shelfConns,
				Request: func(int) []byte { return request }, Answer: ok}, shelfRate, 3*turn)
			check(b, err)
			if round > 0 { // the first one warms
				p50s[i] = append(p50s[i], found.Percentile(50).Seconds()*1000)
				p99s[i] = append(p99s[i], found.Percentile(99).Seconds()*1000)
			}
		}
	}
	more := median(p99s[1]) - median(p99s[0])
	rows.goal(fmt.Sprintf("recommendations with %d expanded items from memory, %d/s", shelf, shelfRate),
		fmt.Sprintf("p50 %.2f ms, p99 %.2f ms", median(p50s[1]), median(p99s[1])),
		fmt.Sprintf("without: p50 %.2f ms, p99 %.2f ms", median(p50s[0]), median(p99s[0])),
		fmt.Sprintf("p99 %+.2f ms", more), "p99 ≤ +2 ms")
	b.ReportMetric(more, "p99-more-ms")
	b.ReportMetric(0, "ns/op")
}

func ok(_, status int, body []byte) error {
	if status != http.StatusOK {
		return fmt.Errorf("%d %s", status, body)
	}
	return nil
}

// recommendation is a request for recommendations with more members.
func (s shop) recommendation(edge node, more string) []byte {
	body := `{"placement":"home"` + more + `}`
	return fmt.Appendf(nil, "POST /v1/connections/%s/recommendations HTTP/1.1\r\nHost: %s\r\n"+
		"Authorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", s.id,
		edge.address, s.key, len(body), body)
}

// whole reports whether the answer has the whole shelf with its items.
func whole(b *testing.B, edge node, request []byte) bool {
	b.Helper()
	status, body, err := load.Once(edge.address, request)
	check(b, err)
	check(b, ok(0, status, body))
	return bytes.Count(body, []byte(`"title"`)) >= shelf
}

// recommends lets the engine recommend these items.
func (e *engine) recommends(b *testing.B, ids []string) {
	b.Helper()
	type item struct {
		ItemID string `json:"item_id"`
	}
	var shelf struct {
		Items []item `json:"items"`
	}
	for _, id := range ids {
		shelf.Items = append(shelf.Items, item{id})
	}
	var err error
	e.recommendation, err = json.Marshal(shelf)
	check(b, err)
}
