//go:build web

package webtest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"storefront.internal/deploy/stack/client"
	"storefront.internal/deploy/stack/poll"
)

// receipt is what the demo engine says of one interaction.
type receipt struct {
	Result      string    `json:"result"`
	ReceivedAt  time.Time `json:"received_at"`
	Interaction struct {
		SignalID   string          `json:"signal_id"`
		Type       string          `json:"type"`
		OccurredAt time.Time       `json:"occurred_at"`
		Order      string          `json:"order_external_id"`
		Visitor    json.RawMessage `json:"visitor"`
		CartLine   *struct {
			Quantity int `json:"quantity"`
		} `json:"cart_line"`
	} `json:"interaction"`
}

func (s *service) receipts(ctx context.Context, since int) ([]receipt, error) {
	var body struct {
		Interactions []receipt `json:"interactions"`
	}
	err := client.Call(ctx, nil, client.Request{Method: http.MethodGet,
		URL: fmt.Sprintf("%s/debug/interactions?since=%d", s.engine.URL, since)}, &body)
	return body.Interactions, err
}

// verdict is what the service has of a set of signals.
type verdict struct {
	Lost    []string // not created at the engine
	Doubled []string // created more than once, or stored more than once
}

// judge waits until the engine has created every signal, and counts what it and the ledger have.
func (s *service) judge(ctx context.Context, minted []string, within time.Duration) (v verdict, err error) {
	seen, created := 0, map[string]int{}
	ask := func() error {
		more, err := s.receipts(ctx, seen)
		if err != nil {
			return err
		}
		seen += len(more)
		for _, r := range more {
			if r.Result == "created" {
				created[r.Interaction.SignalID]++
			}
		}
		v.Lost = nil
		for _, id := range minted {
			if created[id] == 0 {
				v.Lost = append(v.Lost, id)
			}
		}
		if len(v.Lost) > 0 {
			return fmt.Errorf("%d of %d are missing", len(v.Lost), len(minted))
		}
		return nil
	}
	if err := poll.Within(ctx, within, "every signal is at the engine", ask); err != nil && len(v.Lost) == 0 {
		return v, err
	}
	for id, n := range created {
		if n > 1 {
			v.Doubled = append(v.Doubled, id)
		}
	}
	rows, err := s.pool.Query(ctx, "SELECT signal_id FROM relay.signals GROUP BY connection_id, signal_id "+
		"HAVING count(*) > 1")
	if err != nil {
		return v, err
	}
	twice, err := pgx.CollectRows(rows, pgx.RowTo[string])
	v.Doubled = append(v.Doubled, twice...)
	return v, err
}
