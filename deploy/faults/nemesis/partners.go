package nemesis

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"storefront.internal/deploy/local/services"
)

// behave changes how the demo engine or the fake provider answers.
type behave struct {
	url  string
	body any
	then func(context.Context) error // after it was set right
}

func (f behave) Inject(ctx context.Context) error { return f.post(ctx, f.body) }

func (f behave) Heal(ctx context.Context) error {
	err := f.post(ctx, struct{}{})
	if err == nil && f.then != nil {
		err = f.then(ctx)
	}
	return err
}

func (f behave) post(ctx context.Context, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return again(ctx, func(ctx context.Context) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, f.url+"/debug/behaviour", bytes.NewReader(text))
		if err != nil {
			return err
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusNoContent {
			said, _ := io.ReadAll(res.Body) // it is for the message only
			return fmt.Errorf("behaviour %s: %d %s", text, res.StatusCode, said)
		}
		return nil
	})
}

// N12: the engine misbehaves toward deliveries. What makes a delivery die is kept to a few requests: the run replays the dead
// in the end.
func (n *Nemesis) engine() (Case, bool) {
	x := n.Topology
	type answer map[string]any
	b := pick(n,
		answer{"answer": "partial"}, answer{"answer": "html"}, answer{"answer": "redirect"},
		answer{"status": 401}, answer{"status": 401}, answer{"status": 403}, answer{"status": 404}, answer{"status": 413, "times": 2},
		answer{"status": 400, "times": 2}, answer{"status": 422, "times": 3}, answer{"status": 429, "retry_after": 2}, answer{"status": 500}, answer{"status": 503},
		answer{"hang_ms": 5000}, answer{"hang_ms": 3000, "after_effect": true}, answer{"after_effect": true}, answer{"after_effect": true, "status": 500},
	)
	calls := map[string]any{"interactions": b}
	if n.random.IntN(3) == 0 && b["times"] == nil {
		calls["observations"], calls["recommendations"] = b, b
	}
	text, err := json.Marshal(calls)
	if err != nil {
		panic(err) // of our own making
	}
	f := behave{url: x.Engine.URL, body: calls}
	if b["status"] == 401 {
		f.then = func(ctx context.Context) error { return resume(ctx, x.API()) }
	}
	return Case{Fault: f, Detail: "the engine answers " + string(text), Touches: []string{x.Engine.Name}, Hold: n.between(2*time.Second, 12*time.Second)}, true
}

// resume leaves `blocked` as an operator does once the token is right again (E5); a worker that is not blocked is as good.
func resume(ctx context.Context, api services.Internal) error {
	return again(ctx, func(ctx context.Context) error {
		err := api.Resume(ctx)
		var status *services.StatusError
		if errors.As(err, &status) && status.Status == http.StatusConflict {
			return nil
		}
		return err
	})
}

// N14: the provider misbehaves toward fetches.
func (n *Nemesis) provider() (Case, bool) {
	x := n.Topology
	type answer map[string]any
	b := pick(n,
		answer{"status": 429, "retry_after": 1}, answer{"status": 500}, answer{"status": 503, "retry_after": 1}, answer{"status": 502, "every": 2},
		answer{"hang_ms": 2000}, answer{"hang_ms": 12000, "times": 3}, answer{"answer": "html"}, answer{"answer": "redirect"}, answer{"answer": "drop"},
		answer{"answer": "huge", "times": 3},
	)
	text, err := json.Marshal(b)
	if err != nil {
		panic(err) // of our own making
	}
	return Case{Fault: behave{url: x.Provider.URL, body: map[string]any{"api": b}}, Detail: "the provider answers " + string(text),
		Touches: []string{x.Provider.Name}, Hold: n.between(2*time.Second, 10*time.Second)}, true
}
