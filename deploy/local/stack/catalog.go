package stack

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"storefront.internal/deploy/democonnector/connector"
	shop "storefront.internal/deploy/democonnector/demo"
	"storefront.internal/deploy/local/services"
)

// fill lets the demo connector deliver its shop to the custom connection. What an earlier run delivered is answered `duplicate`.
func (s *Stack) fill(ctx context.Context) error {
	c := s.state.Connection
	report, err := shop.Run(ctx, connector.Config{
		BaseURL: s.url(s.ports.control), ConnectionID: c.ConnectionID, Token: c.Token, Log: s.say,
	}, s.path("democonnector-"+c.ConnectionID+".json"))
	if err != nil {
		return fmt.Errorf("deliver the demo catalog: %w", err)
	}
	s.say("demo catalog: %s", report)
	return s.engineKnows(ctx)
}

// engineKnows waits until the engine has read of the fake store's products, so that the first recommendation is the engine's.
// The wait has an end: without the engine, recommendations come from the catalog.
func (s *Stack) engineKnows(ctx context.Context) error {
	question := map[string]any{"connection_id": s.state.Shop.ConnectionID, "decision_id": "dec_start", "placement": "home"}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(20 * time.Second); ; {
		err := services.Call(ctx, http.MethodPost, s.shared.EngineURL+"/v1/recommendations", s.shared.EngineSecret, question, nil)
		if err == nil {
			return nil
		}
		if time.Now().After(end) {
			s.say("the demo engine has not read the catalog yet (%v): recommendations fall back to the catalog until it has", err)
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		}
	}
}
