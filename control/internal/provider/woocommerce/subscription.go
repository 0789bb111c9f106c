package woocommerce

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"storefront.internal/control/internal/outbound"
	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/provider/payload"
	"storefront.internal/control/internal/provider/remote"
	"storefront.internal/shared/settings"
)

type webhook struct {
	ID     payload.ID   `json:"id"`
	Status payload.Text `json:"status"`
	Topic  payload.Text `json:"topic"`
	URL    payload.Text `json:"delivery_url"`
}

func (w webhook) subscription() provider.Subscription {
	return provider.Subscription{ID: string(w.ID), Topic: string(w.Topic), URL: string(w.URL),
		Disabled: w.Status != "active"}
}

// maxListPages bounds a list of subscriptions, which are those of every app of the shop.
const maxListPages = 20

// Subscriptions implements provider.Adapter. The shop lists the webhooks of other apps too: a caller compares
// the URL.
func (a *Adapter) Subscriptions(ctx context.Context, s provider.Shop) ([]provider.Subscription, error) {
	var out []provider.Subscription
	for page := 1; page <= maxListPages; page++ {
		got, err := a.readPage(ctx, s, listing{path: "/webhooks", maxBody: outbound.MaxSmall,
			query: url.Values{"orderby": {"id"}, "order": {"asc"}}}, page, maxPerPage)
		if err != nil {
			return nil, remote.UnexpectedNotFound(err)
		}
		for _, raw := range got.entities {
			var hook webhook
			if err := remote.DecodeError(payload.Decode(raw, &hook)); err != nil {
				return nil, err
			}
			out = append(out, hook.subscription())
		}
		if !got.more || len(got.entities) == 0 {
			return out, nil
		}
	}
	return nil, &provider.Temporary{Reason: provider.ReasonPaging}
}

// Subscribe implements provider.Adapter. The secret is ours, because one that the shop makes cannot be read.
func (a *Adapter) Subscribe(
	ctx context.Context, s provider.Shop, want provider.Subscription,
) (provider.Subscription, error) {
	if want.Secret.Reveal() == "" {
		return provider.Subscription{}, &provider.RequestRejected{Reason: provider.ReasonInternal}
	}
	var created webhook
	_, err := a.call(ctx, s, remote.Request{Method: http.MethodPost, Path: "/webhooks",
		Send: map[string]string{"name": "storefront " + want.Topic, "topic": want.Topic,
			"delivery_url": want.URL, "secret": want.Secret.Reveal(), "status": "active"},
		MaxBody: outbound.MaxSmall, Read: remote.Into(&created)})
	if err != nil {
		return provider.Subscription{}, remote.UnexpectedNotFound(err)
	}
	if !created.ID.IsSet() {
		return provider.Subscription{}, &provider.Malformed{Reason: "missing at /id"}
	}
	return created.subscription(), nil
}

// Unsubscribe implements provider.Adapter. Without force the shop answers 501.
func (a *Adapter) Unsubscribe(ctx context.Context, s provider.Shop, id string) error {
	if !payload.IsNumber(id) {
		return nil
	}
	_, err := a.call(ctx, s, remote.Request{Method: http.MethodDelete, Path: "/webhooks/" + id,
		Query: url.Values{"force": {"true"}}, MaxBody: outbound.MaxSmall})
	if errors.Is(err, provider.ErrNotFound) {
		return nil
	}
	return err
}

// RotateSecret implements provider.SecretRotator.
func (a *Adapter) RotateSecret(
	ctx context.Context, s provider.Shop, id string, secret settings.Secret,
) error {
	if !payload.IsNumber(id) || secret.Reveal() == "" {
		return &provider.RequestRejected{Reason: provider.ReasonInternal}
	}
	_, err := a.call(ctx, s, remote.Request{Method: http.MethodPut, Path: "/webhooks/" + id,
		Send: map[string]string{"secret": secret.Reveal()}, MaxBody: outbound.MaxSmall})
	return remote.UnexpectedNotFound(err)
}
