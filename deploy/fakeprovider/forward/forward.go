// Package forward is the public receiver that providers send webhooks to, as a platform connector runs one.
// It hands the raw bytes to control's webhook route and passes the status of the answer back. It checks no
// signature and reads no body. It answers the unsigned ping that WooCommerce sends at a registration with the
// 200 that WooCommerce wants.
package forward

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// Config of a receiver.
type Config struct {
	// Control is the base URL of control, without a trailing slash.
	Control string
	// Tokens are the connector principals' tokens by provider.
	Tokens map[string]string
}

// Receiver takes webhooks at any path that ends with /{provider}/{endpoint_id}.
type Receiver struct {
	config Config
	client *http.Client
	ping   *regexp.Regexp
}

const maxBody = 5 << 20

// New makes a receiver.
func New(c Config) *Receiver {
	client := &http.Client{
		Timeout: 10 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 16},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return &Receiver{config: c, client: client, ping: regexp.MustCompile(`^webhook_id=[0-9]+$`)}
}

// headers are where each provider puts what the internal surface takes under its own names. The first that is
// there counts.
func headers(provider string) (signature, topic, delivery, triggered []string) {
	switch provider {
	case "tiendanube":
		return []string{"X-Linkedstore-Hmac-Sha256"}, nil, nil, nil
	case "shopify":
		return []string{"X-Shopify-Hmac-Sha256", "Shopify-Hmac-Sha256"},
			[]string{"X-Shopify-Topic", "Shopify-Topic"},
			[]string{"X-Shopify-Event-Id", "Shopify-Event-Id"},
			[]string{"X-Shopify-Triggered-At", "Shopify-Triggered-At"}
	case "woocommerce":
		return []string{"X-Wc-Webhook-Signature"}, []string{"X-Wc-Webhook-Topic"},
			[]string{"X-Wc-Webhook-Delivery-Id"}, nil
	}
	return nil, nil, nil, nil
}

// ServeHTTP forwards one webhook.
func (f *Receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	provider, endpoint, ok := lastTwo(r.URL.Path)
	token := f.config.Tokens[provider]
	if !ok || token == "" {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		return
	}
	signature, _, _, _ := headers(provider)
	signed := first(r.Header, signature) != ""
	switch {
	case provider == "woocommerce" && !signed && f.ping.Match(body):
		w.WriteHeader(http.StatusOK)
	case !signed:
		w.WriteHeader(http.StatusUnauthorized)
	default:
		f.forward(w, r, provider, endpoint, token, body)
	}
}

// forward sends a webhook to control and answers with the status of its answer, or 502 when there is none, so
// that the provider tries again.
func (f *Receiver) forward(
	w http.ResponseWriter, r *http.Request, provider, endpoint, token string, body []byte,
) {
	target := fmt.Sprintf("%s/internal/v1/webhooks/%s/%s", f.config.Control, url.PathEscape(provider),
		url.PathEscape(endpoint))
	out, err := http.NewRequestWithContext(r.Context(), http.MethodPost, target, bytes.NewReader(body))
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	out.Header.Set("Authorization", "Bearer "+token)
	out.Header.Set("Content-Type", "application/octet-stream")
	signature, topic, delivery, triggered := headers(provider)
	for name, from := range map[string][]string{
		"X-Provider-Signature": signature, "X-Provider-Topic": topic, "X-Provider-Delivery-Id": delivery,
		"X-Provider-Triggered-At": triggered,
	} {
		if value := first(r.Header, from); value != "" {
			out.Header.Set(name, value)
		}
	}
	res, err := f.client.Do(out)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	_ = res.Body.Close() // providers read no bodies
	if after := res.Header.Get("Retry-After"); after != "" {
		w.Header().Set("Retry-After", after)
	}
	w.WriteHeader(res.StatusCode)
}

func first(h http.Header, names []string) string {
	for _, name := range names {
		if value := h.Get(name); value != "" {
			return value
		}
	}
	return ""
}

func lastTwo(path string) (provider, endpoint string, ok bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if len(parts) < 2 {
		return "", "", false
	}
	return parts[len(parts)-2], parts[len(parts)-1], true
}
