package tiendanube

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"storefront.internal/control/internal/outbound"
	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/provider/payload"
	"storefront.internal/control/internal/provider/remote"
)

type webhook struct {
	ID    payload.ID   `json:"id"`
	Event payload.Text `json:"event"`
	URL   payload.Text `json:"url"`
}

func (w webhook) subscription() provider.Subscription {
	return provider.Subscription{ID: string(w.ID), Topic: string(w.Event), URL: string(w.URL)}
}

// maxListPages bounds a list of subscriptions: an app has a few dozen.
const maxListPages = 20

// Subscriptions implements provider.Adapter.
func (a *Adapter) Subscriptions(ctx context.Context, s provider.Shop) ([]provider.Subscription, error) {
	var out []provider.Subscription
	for page := 1; page <= maxListPages; page++ {
		query := url.Values{"per_page": {strconv.Itoa(maxPerPage)}, "page": {strconv.Itoa(page)}}
		var entities []json.RawMessage
		response, err := a.call(ctx, s,
			remote.Request{Method: http.MethodGet, Path: "/webhooks", Query: query,
				MaxBody: outbound.MaxSmall, Read: func(response *outbound.Response) (err error) {
					entities, err = remote.Elements(response, maxPerPage)
					return err
				}})
		if errors.Is(err, provider.ErrNotFound) && remote.IsJSON(response) {
			return out, nil
		}
		if err != nil {
			return nil, remote.UnexpectedNotFound(err)
		}
		for _, raw := range entities {
			var hook webhook
			if err := remote.DecodeError(payload.Decode(raw, &hook)); err != nil {
				return nil, err
			}
			out = append(out, hook.subscription())
		}
		if len(entities) == 0 || !hasNextPage(response.Header, len(entities), maxPerPage) {
			return out, nil
		}
	}
	return nil, &provider.Temporary{Reason: provider.ReasonPaging}
}

// Subscribe implements provider.Adapter. The provider accepts duplicates and sends one webhook for each.
func (a *Adapter) Subscribe(
	ctx context.Context, s provider.Shop, want provider.Subscription,
) (provider.Subscription, error) {
	var created webhook
	_, err := a.call(ctx, s, remote.Request{Method: http.MethodPost, Path: "/webhooks",
		Send:    map[string]string{"event": want.Topic, "url": want.URL},
		MaxBody: outbound.MaxSmall, Read: remote.Into(&created)})
	if err != nil {
		return provider.Subscription{}, remote.UnexpectedNotFound(err)
	}
	if !created.ID.IsSet() {
		return provider.Subscription{}, &provider.Malformed{Reason: "missing at /id"}
	}
	return created.subscription(), nil
}

// Unsubscribe implements provider.Adapter.
func (a *Adapter) Unsubscribe(ctx context.Context, s provider.Shop, id string) error {
	if !payload.IsNumber(id) {
		return nil
	}
	response, err := a.call(ctx, s, remote.Request{Method: http.MethodDelete, Path: "/webhooks/" + id,
		MaxBody: outbound.MaxSmall})
	if errors.Is(err, provider.ErrNotFound) && remote.IsJSON(response) {
		return nil
	}
	return remote.UnexpectedNotFound(err)
}
