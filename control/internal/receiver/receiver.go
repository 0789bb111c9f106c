// Package receiver is the public address that providers deliver webhooks to. It translates a provider's
// request into deliver_webhook: it checks form and size, adds the connector's token, which the provider does
// not have, and passes the bytes on as they came, because the signature covers them.
//
// It holds no other secret and no store, so it may stand where the internet reaches it. It acknowledges only
// what control has taken. While control is down it answers 503, and the provider tries again.
package receiver

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"storefront.internal/control/internal/provider/woocommerce"
	"storefront.internal/control/internal/webhook"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/settings"
	"storefront.internal/shared/telemetry"
)

// MaxBody is the largest body of a webhook, which is that of deliver_webhook.
const MaxBody = webhook.MaxBody

// maxSignature bounds the text of a signature.
const maxSignature = 512

// retryAfter is the Retry-After of a 503, in seconds.
const retryAfter = "30"

// Config configures a Receiver.
type Config struct {
	Control    *url.URL                   // the base URL of control
	Tokens     map[string]settings.Secret // of connectors, by provider
	Path       string                     // in front of /{provider}/{endpoint_id}, without a slash at its end
	BodyBudget int64                      // bytes of bodies that are held at a time
	Transport  http.RoundTripper          // to control
	Timeout    time.Duration              // of control's answer
	Logger     *slog.Logger
	Metrics    *Metrics
}

// Receiver is the handler of the public surface.
type Receiver struct {
	cfg    Config
	client *http.Client
	digits *regexp.Regexp // of a Retry-After
	used   atomic.Int64   // of the budget
	lines  *telemetry.Throttle[outcome]
}

// New returns a receiver.
func New(c Config) *Receiver {
	for provider := range c.Tokens {
		c.Metrics.expect(provider)
	}
	return &Receiver{cfg: c, digits: regexp.MustCompile(`^[0-9]{1,6}$`),
		lines: telemetry.NewThrottle[outcome](time.Minute, 5),
		client: &http.Client{Transport: c.Transport, Timeout: c.Timeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// delivery is one request of a provider.
type delivery struct {
	provider, endpoint string
	signature          string
	hints              map[string]string // headers of deliver_webhook
	body               []byte
}

// ServeHTTP implements http.Handler. Answers have no body: providers read the status only.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	d, ok := r.route(req.URL.Path)
	switch {
	case !ok:
		w.WriteHeader(http.StatusNotFound)
		return
	case req.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	did, status := r.receive(w, req, d)
	r.cfg.Metrics.count(d.provider, did)
	if status == http.StatusServiceUnavailable && w.Header().Get("Retry-After") == "" {
		w.Header().Set("Retry-After", retryAfter)
	}
	w.WriteHeader(status)
}

// route reads the path. An endpoint that cannot exist and a provider without a token are not found.
func (r *Receiver) route(path string) (*delivery, bool) {
	rest, under := strings.CutPrefix(path, r.cfg.Path+"/")
	provider, endpoint, two := strings.Cut(rest, "/")
	_, known := r.cfg.Tokens[provider]
	return &delivery{provider: provider, endpoint: endpoint},
		under && two && known && ident.Valid(ident.Endpoint, endpoint)
}

// receive checks the form, and hands the webhook to control.
func (r *Receiver) receive(w http.ResponseWriter, req *http.Request, d *delivery) (outcome, int) {
	if len(req.Header.Values("Content-Encoding")) > 0 {
		return malformed, http.StatusUnsupportedMediaType
	}
	if req.ContentLength > MaxBody {
		return tooLarge, http.StatusRequestEntityTooLarge
	}
	size := req.ContentLength
	if size < 0 {
		size = MaxBody // chunked
	}
	if r.used.Add(size) > r.cfg.BodyBudget {
		r.used.Add(-size)
		return full, http.StatusServiceUnavailable
	}
	defer r.used.Add(-size)
	var err error
	if d.body, err = read(w, req, size); err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			return tooLarge, http.StatusRequestEntityTooLarge
		}
		return malformed, http.StatusBadRequest
	}
	d.translate(req.Header)
	switch {
	case d.signature == "" && d.provider == woocommerce.Name && new(woocommerce.Adapter).IsPing(d.body):
		return ping, http.StatusOK // WooCommerce asks whether the address answers; there is nothing to take
	case d.signature == "" || len(d.signature) > maxSignature:
		return unsigned, http.StatusUnauthorized
	}
	return r.forward(w, req, d)
}

func read(w http.ResponseWriter, req *http.Request, size int64) ([]byte, error) {
	var b bytes.Buffer
	if req.ContentLength >= 0 {
		b.Grow(int(size) + bytes.MinRead)
	}
	_, err := b.ReadFrom(http.MaxBytesReader(w, req.Body, MaxBody))
	if err == nil && b.Len() == 0 {
		err = io.ErrUnexpectedEOF
	}
	return b.Bytes(), err
}

// held is the number of bytes of the bodies in work.
func (r *Receiver) held() float64 { return float64(r.used.Load()) }
