package woocommerce

import (
	"context"
	"errors"
	"net/http"
	"net/url"

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
	return provider.Subscription{ID: string(w.ID), Topic: string(w.Topic), URL: string(w.URL), Disabled: w.Status != "active"}
}

// mostPages bounds a list of subscriptions: of every app of the shop.
const mostPages = 20

// Subscriptions implements provider.Adapter. The shop lists the webhooks of others too: a caller looks at the URL.
func (a *Adapter) Subscriptions(ctx context.Context, s provider.Store) ([]provider.Subscription, error) {
	var out []provider.Subscription
	for page := 1; page <= mostPages; page++ {
		got, err := a.sheet(ctx, s, "/webhooks", url.Values{"orderby": {"id"}, "order": {"asc"}}, page, mostPerPage)
		if err != nil {
			return nil, notGone(err)
		}
		for _, span := range got.spans {
			var hook webhook
			if err := remote.Shape(payload.Decode(span, &hook)); err != nil {
				return nil, err
			}
			out = append(out, hook.subscription())
		}
		if !got.more || len(got.spans) == 0 {
			return out, nil
		}
	}
	return nil, &provider.Temporary{Reason: provider.ReasonPaging}
}

func notGone(err error) error {
	if errors.Is(err, provider.ErrGone) {
		return &provider.Temporary{Reason: provider.ReasonContentType, Status: http.StatusNotFound}
	}
	return err
}

// Subscribe implements provider.Adapter. The secret is ours: one that the shop makes up could never be read.
func (a *Adapter) Subscribe(ctx context.Context, s provider.Store, want provider.Subscription) (provider.Subscription, error) {
	if want.Secret.Reveal() == "" {
		return provider.Subscription{}, &provider.Rejected{Reason: provider.ReasonInternal}
	}
	answer, err := a.call(ctx, s, http.MethodPost, "/webhooks", nil, map[string]string{"name": "storefront " + want.Topic, "topic": want.Topic,
		"delivery_url": want.URL, "secret": want.Secret.Reveal(), "status": "active"})
	if err != nil {
		return provider.Subscription{}, notGone(err)
	}
	var made webhook
	if err := remote.Decode(answer, &made); err != nil {
		return provider.Subscription{}, err
	}
	if !made.ID.Some() {
		return provider.Subscription{}, &provider.Malformed{Reason: "missing at /id"}
	}
	return made.subscription(), nil
}

// Unsubscribe implements provider.Adapter. Without force the shop answers 501.
func (a *Adapter) Unsubscribe(ctx context.Context, s provider.Store, id string) error {
	if !isNumber(id) {
		return nil
	}
	_, err := a.call(ctx, s, http.MethodDelete, "/webhooks/"+id, url.Values{"force": {"true"}}, nil)
	if errors.Is(err, provider.ErrGone) {
		return nil
	}
	return err
}

// Rekey implements provider.Rekeyer.
func (a *Adapter) Rekey(ctx context.Context, s provider.Store, id string, secret settings.Secret) error {
	if !isNumber(id) || secret.Reveal() == "" {
		return &provider.Rejected{Reason: provider.ReasonInternal}
	}
	_, err := a.call(ctx, s, http.MethodPut, "/webhooks/"+id, nil, map[string]string{"secret": secret.Reveal()})
	return notGone(err)
}
