package tiendanube

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"

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

// mostPages bounds a list of subscriptions: an app has a few dozen.
const mostPages = 20

// Subscriptions implements provider.Adapter.
func (a *Adapter) Subscriptions(ctx context.Context, s provider.Store) ([]provider.Subscription, error) {
	var out []provider.Subscription
	for page := 1; page <= mostPages; page++ {
		query := url.Values{"per_page": {strconv.Itoa(mostPerPage)}, "page": {strconv.Itoa(page)}}
		answer, err := a.call(ctx, s, http.MethodGet, "/webhooks", query, nil)
		if errors.Is(err, provider.ErrGone) && remote.IsJSON(answer) {
			return out, nil
		}
		if err != nil {
			return nil, notGone(err)
		}
		var hooks []webhook
		if err := remote.Decode(answer, &hooks); err != nil {
			return nil, err
		}
		for _, hook := range hooks {
			out = append(out, hook.subscription())
		}
		if len(hooks) == 0 || !hasNext(answer.Header, len(hooks), mostPerPage) {
			return out, nil
		}
	}
	return nil, &provider.Temporary{Reason: provider.ReasonPaging}
}

// Subscribe implements provider.Adapter. The provider keeps doubles apart: who subscribes twice is told twice.
func (a *Adapter) Subscribe(ctx context.Context, s provider.Store, want provider.Subscription) (provider.Subscription, error) {
	answer, err := a.call(ctx, s, http.MethodPost, "/webhooks", nil, map[string]string{"event": want.Topic, "url": want.URL})
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

// Unsubscribe implements provider.Adapter.
func (a *Adapter) Unsubscribe(ctx context.Context, s provider.Store, id string) error {
	if !isNumber(id) {
		return nil
	}
	answer, err := a.call(ctx, s, http.MethodDelete, "/webhooks/"+id, nil, nil)
	if errors.Is(err, provider.ErrGone) && remote.IsJSON(answer) {
		return nil
	}
	return notGone(err)
}
