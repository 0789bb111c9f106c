package scenario

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"storefront.internal/deploy/fakeprovider/catalogue"
	"storefront.internal/deploy/faults/collect"
	"storefront.internal/deploy/faults/liveness"
	"storefront.internal/deploy/faults/load"
	"storefront.internal/deploy/faults/nemesis"
	"storefront.internal/deploy/faults/recording"
	"storefront.internal/deploy/faults/topology"
	"storefront.internal/deploy/stack/client"
	"storefront.internal/shared/backoff"
)

// steadyBatch is the number of signals of a steady batch: its body is larger than what an edge reads without
// a reservation.
const steadyBatch = 20

// Outage takes a dependency down as the campaign does, while clients make steady calls, and waits for the
// recovery a little longer than it may take.
func (s *Env) Outage(ctx context.Context, d liveness.Dependency, how liveness.How) error {
	c, known := liveness.Find(string(d) + " " + string(how))
	if !known {
		return fmt.Errorf("no case %s %s", d, how)
	}
	decision, err := s.Connection.Recommend(ctx, s.Edge(1))
	if err != nil {
		return err
	}
	items, err := s.Connection.ObserveProducts(ctx, 300)
	if err != nil {
		return err
	}
	if d == liveness.Provider {
		if err := s.Merchant.Open(ctx, s); err != nil {
			return err
		}
	}
	if err := s.WaitIdle(ctx); err != nil {
		return err
	}
	s.Options.RedisFaults = d == liveness.Redis
	steady, stop := context.WithCancel(ctx)
	var clients sync.WaitGroup
	s.callSteadily(steady, &clients, decision, items)
	if d == liveness.Provider {
		s.announceSteadily(steady, &clients)
	}
	clients.Go(func() { s.Recorder.RecordStalls(steady) })
	n := nemesis.New(nemesis.Config{Topology: s.Topology, Recorder: s.Recorder, Redis: true, Logf: s.Say,
		Target: func(*rand.Rand) load.Target {
			return load.Target{Connection: s.Connection.ID, Decision: decision, Item: items[0],
				Key: s.Connection.Key}
		}})
	cold := func(ctx context.Context) bool { return collect.Cold(ctx, collect.TargetsOf(s.Topology)) }
	n.Outage(ctx, c, cold,
		func(ctx context.Context) { s.awaitRecovery(ctx, decision) })
	stop()
	clients.Wait()
	if failed := n.Failed(); len(failed) > 0 {
		return errors.New(failed[0])
	}
	return nil
}

// steadyClient makes calls that have all the time that they take, each over a new connection.
func (s *Env) steadyClient() recording.Client {
	c := s.Client()
	c.HTTP = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	c.Steady, c.Timeout = true, 0
	return c
}

// callSteadily starts clients of the connection that call at fixed rates.
func (s *Env) callSteadily(ctx context.Context, clients *sync.WaitGroup, decision string, items []string) {
	c := *s.Connection
	c.client = s.steadyClient()
	start := func(every time.Duration, call func(ctx context.Context, n int)) {
		callEvery(ctx, clients, every, call)
	}
	start(100*time.Millisecond, func(ctx context.Context, n int) {
		batch := c.AddToCart(decision, steadyBatch)
		batch[0].OccurredAt = client.Timestamp(time.Now().Add(-50 * time.Minute))
		c.Send(ctx, s.Edge(1+n%2), batch)
	})
	start(100*time.Millisecond, func(ctx context.Context, n int) {
		c.GetItem(ctx, s.Edge(1+n%2), items[n%len(items)])
	})
	start(250*time.Millisecond, func(ctx context.Context, n int) { _, _ = c.Recommend(ctx, s.Edge(1+n%2)) })
	start(500*time.Millisecond, func(ctx context.Context, n int) {
		_, _ = c.Observe(ctx, "steady", int64(n+1), `{"n":1}`)
	})
}

// announceSteadily starts a client that delivers webhooks about a few products of the shop.
func (s *Env) announceSteadily(ctx context.Context, clients *sync.WaitGroup) {
	c := s.steadyClient()
	callEvery(ctx, clients, 500*time.Millisecond, func(ctx context.Context, n int) {
		id := strconv.Itoa(catalogue.FirstProduct + n%5)
		c.DeliverWebhook(ctx, s.Merchant.Connection, s.Merchant.endpoint, id,
			load.WebhookBody(topology.ShopID, "product/updated", id))
	})
}

// callEvery starts a client that makes a call at each tick, however long the calls before take.
func callEvery(ctx context.Context, clients *sync.WaitGroup, every time.Duration,
	call func(ctx context.Context, n int)) {
	clients.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			clients.Go(func() { call(context.WithoutCancel(ctx), n) })
		}
	})
}

// awaitRecovery waits until each edge accepts a signal that the engine gets.
func (s *Env) awaitRecovery(ctx context.Context, decision string) {
	ctx, cancel := context.WithTimeout(ctx, liveness.RecoveryLimit+2*time.Second)
	defer cancel()
	for i := range s.Edges {
		batch := s.Connection.AddToCart(decision, 1)
		if s.Connection.SendUntilAccepted(ctx, s.Edge(i+1), batch) != nil {
			return
		}
		query := url.Values{"connection_id": {s.Connection.ID}, "signal_id": {batch[0].ID}}
		_ = Until(ctx, "delivery", func() (bool, error) {
			return client.Do(ctx, nil, client.Request{Method: http.MethodGet,
				URL: s.Topology.Engine.URL + "/debug/known?" + query.Encode()}).OK(), nil
		})
	}
}

// ObserveProducts delivers products and returns their item ids.
func (c *Connection) ObserveProducts(ctx context.Context, n int) ([]string, error) {
	var batch []recording.Observation
	for i := range n {
		batch = append(batch, product(fmt.Sprintf("p-%04d", i), 1, `{"n":1}`))
	}
	var items []string
	for {
		e := c.client.DeliverObservations(ctx, c.ID, c.token, batch)
		for _, r := range e.ObservationResults {
			items = append(items, r.EntityID)
		}
		if len(items) == n {
			return items, nil
		}
		if err := backoff.Sleep(ctx, 200*time.Millisecond); err != nil {
			return nil, fmt.Errorf("deliver products: %d %s", e.Status, e.Error)
		}
	}
}
