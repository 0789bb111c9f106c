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
	id, _ := parseGID(w.ID)
	return provider.Subscription{ID: id, Topic: parseEnumTopic(string(w.Topic)), URL: string(w.URI)}
}

// enumTopic returns the GraphQL name of a topic: inventory_items/update is INVENTORY_ITEMS_UPDATE.
func enumTopic(topic string) string { return strings.ToUpper(strings.ReplaceAll(topic, "/", "_")) }

// parseEnumTopic is the inverse. The GraphQL name does not tell which underscore is the slash: the subscribed
// topics are looked up, and of others it is the last one, since nearly every event is one word.
func parseEnumTopic(enum string) string {
	for _, topic := range (*Adapter)(nil).WebhookTopics() {
		if enumTopic(topic) == enum {
			return topic
		}
	}
	at := strings.LastIndexByte(enum, '_')
	if at < 0 {
		return strings.ToLower(enum)
	}
	return strings.ToLower(enum[:at] + "/" + enum[at+1:])
}

// Bounds of a list of subscriptions: an app has a few dozen.
const (
	maxListPages = 20
	maxHooks     = 200 // of a page, as queryWebhooks asks for
)

// Subscriptions implements provider.Adapter.
func (a *Adapter) Subscriptions(ctx context.Context, s provider.Shop) ([]provider.Subscription, error) {
	var out []provider.Subscription
	variables := map[string]any{}
	for range maxListPages {
		var data struct {
			Hooks *connection[webhook] `json:"webhookSubscriptions"`
		}
		if err := a.query(ctx, s, queryWebhooks, variables, costSmall*10, &data); err != nil {
			return nil, err
		}
		if data.Hooks == nil {
			return nil, &provider.Temporary{Reason: provider.ReasonInvalidJSON}
		}
		hooks := data.Hooks.items()
		if len(hooks) > maxHooks {
			return nil, &provider.Malformed{Reason: "more elements than asked for"}
		}
		for _, hook := range hooks {
			out = append(out, hook.subscription())
		}
		if !data.Hooks.PageInfo.HasNextPage {
			return out, nil
		}
		variables["after"] = data.Hooks.PageInfo.EndCursor
	}
	return nil, &provider.Temporary{Reason: provider.ReasonPaging}
}

// Subscribe implements provider.Adapter. The provider refuses a duplicate of topic and address: the existing
// one is returned.
func (a *Adapter) Subscribe(
	ctx context.Context, s provider.Shop, want provider.Subscription,
) (provider.Subscription, error) {
	var data struct {
		Create struct {
			Hook   *webhook   `json:"webhookSubscription"`
			Errors userErrors `json:"userErrors"`
		} `json:"webhookSubscriptionCreate"`
	}
	variables := map[string]any{"topic": enumTopic(want.Topic), "uri": want.URL}
	if err := a.query(ctx, s, mutationSubscribe, variables, costSmall, &data); err != nil {
		return provider.Subscription{}, err
	}
	if hook := data.Create.Hook; hook != nil && len(data.Create.Errors) == 0 {
		created := hook.subscription()
		if created.ID == "" {
			return provider.Subscription{}, &provider.Malformed{Reason: "missing at /id"}
		}
		return created, nil
	}
	all, err := a.Subscriptions(ctx, s)
	if err != nil {
		return provider.Subscription{}, err
	}
	for _, existing := range all {
		if existing.Topic == want.Topic && existing.URL == want.URL {
			return existing, nil
		}
	}
	return provider.Subscription{},
		&provider.RequestRejected{Status: http.StatusOK, Reason: provider.ReasonRequestRejected}
}

// Unsubscribe implements provider.Adapter.
func (a *Adapter) Unsubscribe(ctx context.Context, s provider.Shop, id string) error {
	if !payload.IsNumber(id) {
		return nil
	}
	var data struct {
		Delete struct {
			Errors userErrors `json:"userErrors"`
		} `json:"webhookSubscriptionDelete"`
	}
	variables := map[string]any{"id": gid("WebhookSubscription", id)}
	if err := a.query(ctx, s, mutationUnsubscribe, variables, costSmall, &data); err != nil {
		return err
	}
	for _, e := range data.Delete.Errors {
		if !slices.Contains(e.Field, "id") { // an error about the id means that there is none
			return &provider.RequestRejected{Status: http.StatusOK, Reason: provider.ReasonRequestRejected}
		}
	}
	return nil
}
