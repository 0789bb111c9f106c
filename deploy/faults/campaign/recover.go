package campaign

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"
)

const (
	recoverWithin = 3 * time.Minute // a recovery that takes longer is measured as this
	askEvery      = 100 * time.Millisecond
)

// recover measures how long it takes from now, when everything is healed, until a fresh signal is accepted by every edge and has
// reached the engine.
func (r *run) recover(ctx context.Context) {
	begun := time.Now()
	within, cancel := context.WithTimeout(ctx, recoverWithin)
	defer cancel()
	var all sync.WaitGroup
	for i := range r.topology.Edges {
		all.Go(func() {
			connection, id, ok := r.load.Fresh(within, i)
			for ok && r.arrived(within, connection, id) != nil && within.Err() == nil {
				rest(within, askEvery)
			}
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		return // the run is over: nothing was measured
	}
	took := time.Since(begun)
	if took > 20*time.Second {
		r.Say("recovered after %s", took.Round(100*time.Millisecond))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recovery = append(r.recovery, took)
}

// arrived asks the engine for one interaction.
func (r *run) arrived(ctx context.Context, connection, id string) error {
	query := url.Values{"connection_id": {connection}, "signal_id": {id}}
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, r.topology.Engine.URL+"/debug/known?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(q)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusNoContent {
		return fmt.Errorf("%s is not there: %d", id, res.StatusCode)
	}
	return nil
}

// replayDead replays what died of answers that the nemesis made up (E6), as an operator does who has mended the engine.
func (r *run) replayDead(ctx context.Context) (int, error) {
	api := r.topology.API()
	view, err := api.Queue(ctx)
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
		rest(ctx, 2*time.Second) // the relays take the request up in a moment
	}
	return total, nil
}
