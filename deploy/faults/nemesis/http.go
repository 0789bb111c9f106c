package nemesis

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"storefront.internal/deploy/stack/client"
)

// response describes how the demo engine or the fake provider answers.
type response map[string]any

// setBehaviour changes how the demo engine or the fake provider answers.
func setBehaviour(url string, body any) func(context.Context) error {
	return func(ctx context.Context) error {
		return retry(ctx, func(ctx context.Context) error {
			return client.Call(ctx, nil, client.Request{Method: http.MethodPost,
				URL: url + "/debug/behaviour", Body: body}, nil)
		})
	}
}

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // the value is made by this program
	}
	return string(b)
}

// N12: let the engine answer deliveries wrongly. Responses that produce dead letters are mostly limited to a
// few requests. The run replays dead letters at its end, announcements of entities too.
func (n *Nemesis) engine() (Operation, bool) {
	x := n.Topology
	r := pick(n,
		response{"answer": "partial"}, response{"answer": "html"}, response{"answer": "redirect"},
		response{"status": 401}, response{"status": 401}, response{"status": 403}, response{"status": 404},
		response{"status": 413, "times": 2}, response{"status": 400, "times": 2}, response{"status": 422,
			"times": 3}, response{"status": 422},
		response{"status": 429, "retry_after": 2}, response{"status": 500}, response{"status": 503},
		response{"hang_ms": 5000}, response{"hang_ms": 3000,
			"after_effect": true}, response{"after_effect": true},
		response{"after_effect": true, "status": 500},
	)
	calls := map[string]any{"interactions": r}
	if n.random.IntN(3) == 0 {
		calls["observations"], calls["recommendations"] = r, r
	}
	heal := setBehaviour(x.Engine.URL, struct{}{})
	if r["status"] == 401 {
		usual := heal
		heal = func(ctx context.Context) error {
			if err := usual(ctx); err != nil {
				return err
			}
			return resumeDelivery(ctx, x.API())
		}
	}
	return Operation{Fault: fault{setBehaviour(x.Engine.URL, calls), heal},
		Detail:  "the engine answers " + text(calls),
		Targets: []string{x.Engine.Name}, Duration: n.randomDuration(2*time.Second, 12*time.Second)}, true
}

// resumeDelivery ends the state `blocked`. The response 409 means that the worker is not blocked.
func resumeDelivery(ctx context.Context, api client.Internal) error {
	return retry(ctx, func(ctx context.Context) error {
		err := api.ResumeDelivery(ctx)
		var status *client.StatusError
		if errors.As(err, &status) && status.Status == http.StatusConflict {
			return nil
		}
		return err
	})
}

// N14: let the provider answer fetches wrongly.
func (n *Nemesis) provider() (Operation, bool) {
	x := n.Topology
	r := pick(n,
		response{"status": 429, "retry_after": 1}, response{"status": 500}, response{"status": 503,
			"retry_after": 1},
		response{"status": 502, "every": 2}, response{"hang_ms": 2000}, response{"hang_ms": 12000,
			"times": 3},
		response{"answer": "html"}, response{"answer": "redirect"}, response{"answer": "drop"},
		response{"answer": "huge", "times": 3},
	)
	f := fault{setBehaviour(x.Provider.URL, map[string]any{"api": r}),
		setBehaviour(x.Provider.URL, struct{}{})}
	return Operation{Fault: f, Detail: "the provider answers " + text(r), Targets: []string{x.Provider.Name},
		Duration: n.randomDuration(2*time.Second, 10*time.Second)}, true
}
