package campaign

import (
	"context"
	"net/http"
	"net/url"
	"sync"
	"time"

	"storefront.internal/deploy/stack/client"
	"storefront.internal/deploy/stack/poll"
	"storefront.internal/shared/backoff"
)

const recoveryTimeout = 3 * time.Minute // a longer recovery counts as this

// measureRecovery measures the time until each edge accepts a new signal and the engine has it. All faults
// are healed.
func (r *run) measureRecovery(ctx context.Context) {
	begun := time.Now()
	limited, cancel := context.WithTimeout(ctx, recoveryTimeout)
	defer cancel()
	var all sync.WaitGroup
	for i := range r.topology.Edges {
		all.Go(func() {
			if connection, signal, err := r.load.Probe(limited, i); err == nil {
				_ = poll.Until(limited, "delivery",
					func() error { return r.checkDelivered(limited, connection, signal) })
			}
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		return // the run is over: nothing was measured
	}
	took := time.Since(begun)
	if took > 20*time.Second {
		r.Logf("recovered after %s", took.Round(100*time.Millisecond))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recovery = append(r.recovery, took)
}

// checkDelivered asks the engine for an interaction.
func (r *run) checkDelivered(ctx context.Context, connection, signal string) error {
	query := url.Values{"connection_id": {connection}, "signal_id": {signal}}
	return client.Call(ctx, nil, client.Request{Method: http.MethodGet,
		URL: r.topology.Engine.URL + "/debug/known?" + query.Encode()}, nil)
}

// replayDead replays the dead letters, which the injected responses of the engine caused.
func (r *run) replayDead(ctx context.Context) (int, error) {
	api := r.topology.API()
	view, err := api.ViewQueue(ctx)
	if err != nil {
		return 0, err
	}
	total := 0
	for _, c := range view.Connections {
		if c.DeadLast24h == 0 {
			continue
		}
		n, err := api.ReplayDead(ctx, c.ConnectionID)
		if err != nil {
			return total, err
		}
		total += n
	}
	if total > 0 {
		_ = backoff.Sleep(ctx, 2*time.Second) // until the relays have noticed the request
	}
	return total, nil
}
