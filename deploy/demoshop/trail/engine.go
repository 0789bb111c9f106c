package trail

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"storefront.internal/deploy/stack/client"
)

const askEvery = 200 * time.Millisecond

// receipt is what the demo engine's debug route says of one interaction.
type receipt struct {
	Result      string    `json:"result"`
	ReceivedAt  time.Time `json:"received_at"`
	Interaction struct {
		SignalID     string `json:"signal_id"`
		ConnectionID string `json:"connection_id"`
		CartLine     *Line  `json:"cart_line"`
	} `json:"interaction"`
}

// Follow asks the demo engine again and again what it received for a connection, until ctx ends.
func (t *Trail) Follow(ctx context.Context, engineURL, connectionID string) {
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	since := 0
	for {
		// An engine that is down is asked again at the next tick.
		if all, err := receipts(ctx, engineURL, since); err == nil {
			since += len(all)
			for _, r := range all {
				if r.Interaction.ConnectionID == connectionID {
					t.Received(r.Interaction.SignalID, r.Result, r.ReceivedAt, r.Interaction.CartLine)
				}
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func receipts(ctx context.Context, engineURL string, since int) ([]receipt, error) {
	var body struct {
		Interactions []json.RawMessage `json:"interactions"`
	}
	err := client.Call(ctx, nil, client.Request{Method: http.MethodGet, Timeout: 5 * time.Second,
		URL: fmt.Sprintf("%s/debug/interactions?since=%d", engineURL, since)}, &body)
	all := make([]receipt, len(body.Interactions))
	for i, raw := range body.Interactions {
		if err := json.Unmarshal(raw, &all[i]); err != nil {
			return nil, err
		}
	}
	return all, err
}
