package httpapi

import (
	"context"
	"net/http"

	"storefront.internal/control/internal/webhook"
)

// webhooks is the path of deliver_webhook. It takes any text as endpoint and provider: an unknown one is a
// 401, like a wrong signature.
const webhooks = "/internal/v1/webhooks/{provider}/{endpoint_id}"

// deliverWebhook is deliver_webhook. The signature is verified over the bytes as they came.
func (a *API) deliverWebhook(ctx context.Context, r *request) (reply, error) {
	buffer, err := a.webhooks.read(r, webhook.MaxBody)
	if err != nil {
		return reply{}, err
	}
	defer buffer.release()
	h := r.http.Header
	ping, err := a.cfg.Webhooks.Receive(ctx, &webhook.Request{
		Caller: r.caller.Provider, Provider: r.params.provider, EndpointID: r.params.endpoint,
		Signature: h.Get("X-Provider-Signature"), Body: buffer.body,
		Topic: h.Get("X-Provider-Topic"), ProviderEventID: h.Get("X-Provider-Delivery-Id"),
		TriggeredAt: h.Get("X-Provider-Triggered-At"),
	})
	if err != nil {
		return reply{}, err
	}
	if ping {
		return reply{status: http.StatusOK}, nil
	}
	return reply{status: http.StatusAccepted}, nil
}
