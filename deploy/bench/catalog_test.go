package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"storefront.internal/deploy/democonnector/connector"
	"storefront.internal/deploy/democonnector/demo"
	"storefront.internal/deploy/stack/client"
)

// shop is a connection with what its connector and its storefront need.
type shop struct {
	id, key string
	url     string // of delivering observations
	token   string
	entries []connector.Observation // the demo shop's products
}

func (s *deployment) shop() shop {
	s.b.Helper()
	ctx := context.Background()
	c, err := s.api.CreateConnection(ctx, "bench-"+random(6))
	check(s.b, err)
	key, err := s.api.IssueKey(ctx, c.ConnectionID)
	check(s.b, err)
	one := shop{id: c.ConnectionID, key: key.Secret, token: c.Token, url: s.api.BaseURL +
		"/internal/v1/connections/" + c.ConnectionID + "/observations"}
	for _, o := range demo.Observations() {
		if o.Entity == connector.Product {
			one.entries = append(one.entries, o)
		}
	}
	return one
}

// batch is the body of a request with 500 products, numbered from first, at a revision.
func (s shop) batch(b *testing.B, first int, revision int64) []byte {
	b.Helper()
	all := make([]connector.Observation, connector.MaxBatch)
	for i := range all {
		all[i] = s.entries[(first+i)%len(s.entries)]
		all[i].ExternalID, all[i].Revision = fmt.Sprint("p-", first+i), revision
	}
	body, err := json.Marshal(map[string]any{"observations": all})
	check(b, err)
	return body
}

// deliver sends a batch and returns the entity ids of its results, which must all have the status.
func (s shop) deliver(body []byte, status string) ([]string, error) {
	var answer struct {
		Results []connector.Result `json:"results"`
	}
	request := client.Request{Method: http.MethodPost, URL: s.url, Token: s.token, Body: body}
	if err := client.Call(context.Background(), nil, request, &answer); err != nil {
		return nil, err
	}
	ids := make([]string, len(answer.Results))
	for i, r := range answer.Results {
		if r.Status != status {
			return nil, fmt.Errorf("result %+v, want %s", r, status)
		}
		ids[i] = r.EntityID
	}
	return ids, nil
}

// BenchmarkDeliver delivers observations in batches of 500 products of the demo shop by four connectors at a
// time, with all services on the machine.
func BenchmarkDeliver(b *testing.B) {
	s := newDeployment(b)
	s.edge()
	s.relay()
	one := s.shop()
	const batches, senders = 24, 4
	for _, kind := range []struct {
		name     string
		revision int64
		status   string
	}{{"new", 1, connector.Accepted}, {"changed", 2, connector.Accepted},
		{"duplicate", 2, connector.Duplicate}} {
		bodies, size := make([][]byte, batches), 0
		for i := range bodies {
			bodies[i] = one.batch(b, i*connector.MaxBatch, kind.revision)
			size += len(bodies[i])
		}
		used := s.control.cpu(b)
		seconds := elapsed(b, senders, batches, func(i int) error {
			_, err := one.deliver(bodies[i], kind.status)
			return err
		})
		rate := batches * connector.MaxBatch / seconds
		cpu := (s.control.cpu(b) - used) / (batches * connector.MaxBatch)
		rows.add("delivering observations, batches of 500, %-9s %8.0f entities/s  CPU of control %s an "+
			"entity of %d bytes", kind.name, rate, cpu.Round(time.Microsecond),
			size/batches/connector.MaxBatch)
		b.ReportMetric(rate, kind.name+"-entities/s")
	}
	b.ReportMetric(0, "ns/op") // one run is one measurement, longer than a benchmark's second
}
