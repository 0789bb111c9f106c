package receiver

import (
	"bytes"
	"net/http"
	"time"

	"storefront.internal/control/internal/provider/shopify"
	"storefront.internal/control/internal/provider/tiendanube"
	"storefront.internal/control/internal/provider/woocommerce"
)

// signatureHeader is where deliver_webhook takes the provider's signature.
const signatureHeader = "X-Provider-Signature"

// headers say where each provider puts what deliver_webhook takes under its own names. The first that is
// there counts.
func headers(provider string) map[string][]string {
	switch provider {
	case tiendanube.Name:
		return map[string][]string{signatureHeader: {"X-Linkedstore-Hmac-Sha256"}}
	case shopify.Name:
		return map[string][]string{
			signatureHeader:           {"X-Shopify-Hmac-Sha256", "Shopify-Hmac-Sha256"},
			"X-Provider-Topic":        {"X-Shopify-Topic", "Shopify-Topic"},
			"X-Provider-Delivery-Id":  {"X-Shopify-Event-Id", "Shopify-Event-Id"},
			"X-Provider-Triggered-At": {"X-Shopify-Triggered-At", "Shopify-Triggered-At"},
		}
	case woocommerce.Name:
		return map[string][]string{
			signatureHeader:          {"X-Wc-Webhook-Signature"},
			"X-Provider-Topic":       {"X-Wc-Webhook-Topic"},
			"X-Provider-Delivery-Id": {"X-Wc-Webhook-Delivery-Id"},
		}
	}
	return nil
}

// Translates reports whether webhooks of the provider can be received.
func Translates(provider string) bool { return headers(provider) != nil }

// translate reads the provider's headers.
func (d *delivery) translate(h http.Header) {
	d.hints = map[string]string{}
	for name, sources := range headers(d.provider) {
		for _, source := range sources {
			if value := h.Get(source); value != "" {
				d.hints[name] = value
				break
			}
		}
	}
	d.signature = d.hints[signatureHeader]
}

// forward hands the webhook to control. Only a status by which control says that it took the webhook is
// passed on as a success. What control says of the webhook itself is passed on; everything else is a 503,
// after which the provider tries again.
func (r *Receiver) forward(w http.ResponseWriter, req *http.Request, d *delivery) (outcome, int) {
	target := r.cfg.Control.JoinPath("internal/v1/webhooks", d.provider, d.endpoint)
	out, err := http.NewRequestWithContext(req.Context(), http.MethodPost, target.String(),
		bytes.NewReader(d.body))
	if err != nil {
		return unavailable, http.StatusServiceUnavailable
	}
	for name, value := range d.hints {
		out.Header.Set(name, value)
	}
	out.Header.Set("Authorization", "Bearer "+r.cfg.Tokens[d.provider].Reveal())
	out.Header.Set("Content-Type", "application/octet-stream")
	// Not sent. It tells the transport that the request may be repeated when an idle connection turns out to
	// be closed: control takes a webhook once, however often it arrives.
	out.Header["Idempotency-Key"] = nil
	began := time.Now()
	res, err := r.client.Do(out)
	if err != nil {
		r.warn(unavailable, "control does not answer", "provider", d.provider, "error", err)
		return unavailable, http.StatusServiceUnavailable
	}
	defer res.Body.Close()
	r.cfg.Metrics.forwarded(time.Since(began))
	if after := res.Header.Get("Retry-After"); r.digits.MatchString(after) {
		w.Header().Set("Retry-After", after)
	}
	switch res.StatusCode {
	case http.StatusOK, http.StatusAccepted:
		return taken, res.StatusCode
	case http.StatusUnauthorized:
		r.warn(refused, "control refuses webhooks: a wrong signature, an unknown endpoint or our token",
			"provider", d.provider, "endpoint", d.endpoint)
		return refused, res.StatusCode
	case http.StatusBadRequest:
		return malformed, res.StatusCode
	case http.StatusRequestEntityTooLarge:
		return tooLarge, res.StatusCode
	case http.StatusTooManyRequests:
		return limited, res.StatusCode
	}
	r.warn(unavailable, "control does not take webhooks", "provider", d.provider, "status", res.StatusCode)
	return unavailable, http.StatusServiceUnavailable
}

// warn writes a few lines a minute of each outcome. The error of a request names control's URL, which has no
// secret.
func (r *Receiver) warn(about outcome, text string, args ...any) {
	if skipped, ok := r.lines.Allow(about); ok {
		r.cfg.Logger.Warn(text, append(args, "similar_not_logged", skipped)...)
	}
}
