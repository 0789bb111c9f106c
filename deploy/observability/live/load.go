package live

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// client calls the stack as shoppers, connectors and the backend do.
type client struct {
	env  env
	http *http.Client
	sent atomic.Int64 // numbers signals
	run  string       // makes them differ from another run's
}

func newClient(e env) *client {
	return &client{env: e, http: &http.Client{Timeout: 20 * time.Second}, run: fmt.Sprintf("%x", time.Now().UnixNano())}
}

func (c *client) call(ctx context.Context, method, url, token string, body any) ([]byte, int, error) {
	var in io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, 0, err
		}
		in = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, url, in)
	if err != nil {
		return nil, 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := c.http.Do(request)
	if err != nil {
		return nil, 0, err
	}
	defer res.Body.Close()
	out, err := io.ReadAll(res.Body)
	return out, res.StatusCode, err
}

type object = map[string]any

// recommend asks for a recommendation and returns its Decision and first item.
func (c *client) recommend(ctx context.Context) (decision, item string, err error) {
	out, status, err := c.call(ctx, http.MethodPost, c.public("recommendations"), c.env["STOREFRONT_KEY"], object{"placement": "home"})
	if err != nil {
		return "", "", err
	}
	var answer struct {
		DecisionID string `json:"decision_id"`
		Items      []struct {
			ItemID string `json:"item_id"`
		}
	}
	if err := json.Unmarshal(out, &answer); err != nil || status != http.StatusOK || len(answer.Items) == 0 {
		return "", "", fmt.Errorf("recommendation: %d %s: %w", status, out, err)
	}
	return answer.DecisionID, answer.Items[0].ItemID, nil
}

func (c *client) public(operation string) string {
	return c.env["BASE_URL"] + "/v1/connections/" + c.env["CONNECTION_ID"] + "/" + operation
}

// signals sends a batch of n cart signals and returns the id of the first.
func (c *client) signals(ctx context.Context, decision, item string, n int) (string, error) {
	var batch []object
	for range n {
		batch = append(batch, object{
			"signal_id": fmt.Sprintf("sig_live%s-%d", c.run, c.sent.Add(1)), "type": "add_to_cart", "decision_id": decision, "item_id": item, "quantity": 1,
			"occurred_at": time.Now().UTC().Format(time.RFC3339Nano),
		})
	}
	first, _ := batch[0]["signal_id"].(string)
	return first, c.send(ctx, batch)
}

func (c *client) send(ctx context.Context, batch []object) error {
	out, status, err := c.call(ctx, http.MethodPost, c.public("storefront-signals"), c.env["STOREFRONT_KEY"], object{"signals": batch})
	if err == nil && status != http.StatusAccepted {
		err = fmt.Errorf("signals: %d %s", status, out)
	}
	return err
}

// load keeps shoppers, connectors and the backend busy until ctx ends, and returns how many calls failed, of how many.
func (c *client) load(ctx context.Context, shoppers int) (failed, calls int64) {
	var bad, all atomic.Int64
	note := func(err error) {
		if ctx.Err() != nil {
			return
		}
		all.Add(1)
		if err != nil {
			bad.Add(1)
		}
	}
	var wg sync.WaitGroup
	for range shoppers {
		wg.Go(func() {
			for ctx.Err() == nil {
				c.visit(ctx, note)
			}
		})
	}
	wg.Go(func() {
		for n := 1; ctx.Err() == nil; n++ {
			c.connectors(ctx, n, note)
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
	})
	wg.Wait()
	return bad.Load(), all.Load()
}

// visit is a shopper: a recommendation, its item, and some batches.
func (c *client) visit(ctx context.Context, note func(error)) {
	decision, item, err := c.recommend(ctx)
	note(err)
	if err != nil {
		return
	}
	_, _, err = c.call(ctx, http.MethodGet, c.env["BASE_URL"]+"/v1/catalog/items/"+item, c.env["STOREFRONT_KEY"], nil)
	note(err)
	for range 20 {
		_, err := c.signals(ctx, decision, item, 3)
		note(err)
		time.Sleep(5 * time.Millisecond)
	}
}

// connectors is what happens on the internal surface and at the provider.
func (c *client) connectors(ctx context.Context, n int, note func(error)) {
	internal := c.env["INTERNAL_BASE_URL"] + "/internal/v1/"
	document := object{"item": object{"title": object{"en": fmt.Sprint("Live ", n)}, "status": "active"}, "variants": []object{{"external_id": "v", "status": "active"}}}
	calls := []func() ([]byte, int, error){
		func() ([]byte, int, error) {
			return c.call(ctx, http.MethodGet, internal+"brain-interactions/queue", c.env["BACKEND_TOKEN"], nil)
		},
		func() ([]byte, int, error) {
			return c.call(ctx, http.MethodPost, internal+"connections/"+c.env["CUSTOM_CONNECTION_ID"]+"/observations", c.env["CUSTOM_CONNECTOR_TOKEN"],
				object{"observations": []object{{"entity": "product", "external_id": fmt.Sprint("live-", n%20), "revision": time.Now().UnixNano() / 1e6, "document": document}}})
		},
		func() ([]byte, int, error) {
			return c.call(ctx, http.MethodPost, c.env["PROVIDER_URL"]+"/debug/webhooks", "", object{"topic": "product/updated", "external_id": c.env["ITEM_EXTERNAL_ID"]})
		},
	}
	for _, call := range calls {
		_, status, err := call()
		if err == nil && status >= http.StatusInternalServerError {
			err = fmt.Errorf("status %d", status)
		}
		note(err)
	}
}
