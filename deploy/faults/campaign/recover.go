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

// resolve does what operators and connectors do about what waits for them: it replays dead letters, corrects
// catalogs, and replays or drops parked records. It returns how much that was.
func (r *run) resolve(ctx context.Context) (int, error) {
	dead, err := r.replayDead(ctx)
	if err != nil {
		return dead, err
	}
	parked, err := r.resolveParked(ctx)
	if dead+parked > 0 {
		_ = backoff.Sleep(ctx, 3*time.Second) // until the relays have noticed the requests
	}
	return dead + parked, err
}

// replayDead replays the dead letters, which the injected responses of the engine caused.
func (r *run) replayDead(ctx context.Context) (total int, err error) {
	for _, connection := range r.load.ConnectionIDs() {
		for _, kind := range []string{client.Interaction, client.Envelope} {
			n, err := r.topology.API().ReplayDead(ctx, connection, kind)
			if err != nil {
				return total, err
			}
			total += n
		}
	}
	r.out.Replayed += total
	return total, nil
}

// resolveParked drops the records that the load made unreadable and replays all others once.
func (r *run) resolveParked(ctx context.Context) (int, error) {
	api := r.topology.API()
	all, err := api.ListParked(ctx)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, p := range all {
		switch {
		case p.Reason == "undecodable":
			r.out.Dropped++
			err = api.DropParked(ctx, p.ParkedID, "made by the fault campaign")
		case r.unparked[p.ParkedID]:
			continue
		default:
			r.out.Unparked++
			err = api.ReplayParked(ctx, p.ParkedID)
		}
		if err != nil {
			return n, err
		}
		r.unparked[p.ParkedID] = true
		n++
	}
	return n, nil
}
