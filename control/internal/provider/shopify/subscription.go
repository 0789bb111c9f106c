package shopify

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/provider/payload"
)

type webhook struct {
	ID    string       `json:"id"`
	Topic payload.Text `json:"topic"`
	URI   payload.Text `json:"uri"`
}

func (w webhook) subscription() provider.Subscription {
	id, _ := number(w.ID)
	return provider.Subscription{ID: id, Topic: topicOf(string(w.Topic)), URL: string(w.URI)}
}

// enum returns the name of a topic in queries: products/update is PRODUCTS_UPDATE.
func enum(topic string) string { return strings.ToUpper(strings.ReplaceAll(topic, "/", "_")) }

func topicOf(enum string) string {
	return strings.ToLower(strings.Replace(enum, "_", "/", 1))
}

// mostPages bounds a list of subscriptions: an app has a few dozen.
const mostPages = 20

// Subscriptions implements provider.Adapter.
func (a *Adapter) Subscriptions(ctx context.Context, s provider.Store) ([]provider.Subscription, error) {
	var out []provider.Subscription
	variables := map[string]any{}
	for range mostPages {
		var data struct {
			Hooks *connection[webhook] `json:"webhookSubscriptions"`
		}
		if err := a.query(ctx, s, queryHooks, variables, costSmall*10, &data); err != nil {
			return nil, err
		}
		if data.Hooks == nil {
			return nil, &provider.Temporary{Reason: provider.ReasonInvalidJSON}
		}
		for _, hook := range data.Hooks.all() {
			out = append(out, hook.subscription())
		}
		if !data.Hooks.PageInfo.HasNextPage {
			return out, nil
		}
		variables["after"] = data.Hooks.PageInfo.EndCursor
	}
	return nil, &provider.Temporary{Reason: provider.ReasonPaging}
}

// Subscribe implements provider.Adapter. The provider refuses a second one of a topic and an address: the first is
// returned then.
func (a *Adapter) Subscribe(ctx context.Context, s provider.Store, want provider.Subscription) (provider.Subscription, error) {
	var data struct {
		Create struct {
			Hook   *webhook   `json:"webhookSubscription"`
			Errors userErrors `json:"userErrors"`
		} `json:"webhookSubscriptionCreate"`
	}
	if err := a.query(ctx, s, createHook, map[string]any{"topic": enum(want.Topic), "uri": want.URL}, costSmall, &data); err != nil {
		return provider.Subscription{}, err
	}
	if hook := data.Create.Hook; hook != nil && len(data.Create.Errors) == 0 {
		made := hook.subscription()
		if made.ID == "" {
			return provider.Subscription{}, &provider.Malformed{Reason: "missing at /id"}
		}
		return made, nil
	}
	all, err := a.Subscriptions(ctx, s)
	if err != nil {
		return provider.Subscription{}, err
	}
	for _, there := range all {
		if there.Topic == want.Topic && there.URL == want.URL {
			return there, nil
		}
	}
	return provider.Subscription{}, &provider.Rejected{Status: http.StatusOK, Reason: provider.ReasonRejected}
}

// Unsubscribe implements provider.Adapter.
func (a *Adapter) Unsubscribe(ctx context.Context, s provider.Store, id string) error {
	if !isNumber(id) {
		return nil
	}
	var data struct {
		Delete struct {
			Errors userErrors `json:"userErrors"`
		} `json:"webhookSubscriptionDelete"`
	}
	if err := a.query(ctx, s, deleteHook, map[string]any{"id": gid("WebhookSubscription", id)}, costSmall, &data); err != nil {
		return err
	}
	for _, e := range data.Delete.Errors {
		if !slices.Contains(e.Field, "id") { // "does not exist" is of the id
			return &provider.Rejected{Status: http.StatusOK, Reason: provider.ReasonRejected}
		}
	}
	return nil
}
