package deliver_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"storefront.internal/engine-relay/internal/deliver"
	"storefront.internal/shared/deliveries"
)

// gauge reads the metric of interactions; -1 without one.
func gauge(t *testing.T, reg *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && m.GetLabel()[0].GetValue() == "interaction" {
				return m.GetGauge().GetValue()
			}
		}
	}
	return -1
}

func entriesOf(connections, each, from int) (batch []deliveries.Entry) {
	for n := range each {
		for c := range connections {
			batch = append(batch, entry(c, n%4, from+n))
		}
	}
	return batch
}

// TestMassRefusal: an engine release that answers 422 to everything costs each relay at most ten deliveries,
// and the others are delivered when it accepts again.
func TestMassRefusal(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	reg := prometheus.NewRegistry()
	s.relayWith("t", func(c *deliver.Config) { c.Registerer = reg })
	s.relayWith("t", nil)
	s.enqueue(entriesOf(5, 20, 0)...)
	s.drained() // the engine is known to accept

	s.stub.set(func(int, []json.RawMessage) behaviour { return behaviour{status: 422} })
	const total = 1000
	s.enqueue(entriesOf(5, total/5, 100)...)
	s.until("a mass refusal", func() bool { return gauge(t, reg, "storefront_engine_mass_refusal") == 1 })
	if n := gauge(t, reg, "storefront_engine_breaker_open"); n != 1 {
		t.Errorf("the circuit breaker's gauge is %v", n)
	}
	refused, _ := s.stub.count()
	s.until("fifty probes", func() bool { n, _ := s.stub.count(); return n > refused+50 })
	const bound = 2 * 10 // of two relays
	dead := int(s.view().Total.DeadLast24h)
	if pending := int(s.view().Total.Pending); dead > bound || pending < total-bound {
		t.Errorf("%d dead, %d pending", dead, pending)
	}

	s.stub.set(nil)
	s.drained()
	s.until("the end of it", func() bool { return gauge(t, reg, "storefront_engine_mass_refusal") == 0 })
	dead = int(s.view().Total.DeadLast24h)
	if _, held := s.stub.count(); dead > bound || held != 100+total-dead {
		t.Errorf("the engine has %d, %d are dead", held, dead)
	}
}

// TestPoisonAmongGood: one of a hundred is refused; it is dead-lettered, and everything else delivered.
func TestPoisonAmongGood(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.stub.set(func(_ int, bodies []json.RawMessage) behaviour {
		for _, b := range bodies {
			if strings.Contains(string(b), `00",`) {
				return behaviour{status: 422}
			}
		}
		return behaviour{}
	})
	const total = 1000
	s.enqueue(entriesOf(2, total/2, 1)...)
	s.relayWith("t", nil)
	s.drained()
	page, err := s.store.ListDead(context.Background(), deliveries.DeadQuery{})
	poison := func(d deliveries.DeadLetter) bool {
		return strings.HasSuffix(d.ID, "00") && d.Reason == "http_422"
	}
	if err != nil || len(page.Dead) != total/100 ||
		slices.ContainsFunc(page.Dead, func(d deliveries.DeadLetter) bool { return !poison(d) }) {
		t.Errorf("dead %+v, %v", page.Dead, err)
	}
	if _, held := s.stub.count(); held != total-total/100 {
		t.Errorf("the engine has %d", held)
	}
}

// TestPoisonFailsOthersOnce: a delivery that makes the engine fail is sent with those of other connections
// once; after that each goes alone.
func TestPoisonFailsOthersOnce(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	failed, most := map[string]int{}, 0
	s.stub.set(func(_ int, bodies []json.RawMessage) behaviour {
		poison := func(b json.RawMessage) bool { return strings.Contains(string(b), `"con_17"`) }
		if !slices.ContainsFunc(bodies, poison) {
			return behaviour{}
		}
		for _, b := range bodies {
			if failed[string(b)]++; !poison(b) {
				most = max(most, failed[string(b)])
			}
		}
		return behaviour{status: 500}
	})
	const connections = 40
	s.enqueue(entriesOf(connections, 1, 1)...)
	s.relayWith("t", nil)
	s.until("everything but one", func() bool { _, held := s.stub.count(); return held == connections-1 })
	s.stub.set(nil)
	s.drained()
	if most != 1 {
		t.Errorf("a good delivery failed %d times", most)
	}
}

// TestOneConnectionPerRequest: with BatchLanes 1 no request has deliveries of two connections.
func TestOneConnectionPerRequest(t *testing.T) {
	t.Parallel()
	for _, lanes := range []int{1, 0} {
		s := newStand(t)
		mixed := false
		s.stub.set(func(_ int, bodies []json.RawMessage) behaviour {
			connections := map[string]bool{}
			for _, b := range bodies {
				var x struct {
					ConnectionID string `json:"connection_id"`
				}
				_ = json.Unmarshal(b, &x)
				connections[x.ConnectionID] = true
			}
			mixed = mixed || len(connections) > 1
			return behaviour{}
		})
		s.enqueue(entriesOf(40, 2, 1)...)
		s.relayWith("t", func(c *deliver.Config) { c.BatchLanes = lanes })
		s.drained()
		requests, held := s.stub.count()
		if mixed != (lanes == 0) || held != 80 || lanes == 0 && requests > 40 {
			t.Errorf("BatchLanes %d: %d requests, several connections in one: %v", lanes, requests, mixed)
		}
	}
}
