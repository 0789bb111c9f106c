package hooks

import (
	"bytes"
	"context"
	"crypto/rand"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"storefront.internal/shared/backoff"
)

// Policy is how a provider delivers.
type Policy struct {
	Timeout time.Duration
	Retries []time.Duration // before each further attempt
	OK      func(status int) bool
	// Failed is called when the last attempt failed, with the number of failed deliveries in a row.
	Failed func(s *Set, id int64, inARow int)
}

// Options are what a debug request may change of a delivery.
type Options struct {
	Repeat  int    // so many deliveries of the same body; 0 is 1
	Forge   string // "": genuine; see Forge* below
	DelayMS int    // before the first one, so that a later one may overtake it
}

// What can be wrong with a delivery.
const (
	ForgeSignature = "signature" // signed with another secret
	ForgeBody      = "body"      // a newline was added after signing
	ForgeMissing   = "missing"   // no signature at all
)

// Message is what a provider sends to a subscription.
type Message struct {
	Header           http.Header
	Body             []byte
	Secret           string
	Sign             func(secret string, body []byte) string
	SignatureHeader  string
	DeliveryIDHeader string // gets an id of each attempt; "": none
}

// Delivery is one attempt and what the receiver answered.
type Delivery struct {
	URL    string `json:"url"`
	Topic  string `json:"topic"`
	Status int    `json:"status,omitempty"`
	Error  string `json:"error,omitempty"`
}

// Sender delivers webhooks and retries in the background until it is closed.
type Sender struct {
	client   *http.Client
	receiver string // "": the URL of the subscription as it is
	base     context.Context
	stop     context.CancelFunc
	work     sync.WaitGroup
}

// NewSender makes a sender. With a receiver ("http://host:port/prefix") a webhook goes to the receiver and
// the path of the subscription's URL.
func NewSender(receiver string) *Sender {
	base, stop := context.WithCancel(context.Background())
	client := &http.Client{
		Transport:     &http.Transport{Proxy: nil, MaxIdleConnsPerHost: 8, IdleConnTimeout: 10 * time.Second},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return &Sender{client: client, receiver: strings.TrimSuffix(receiver, "/"), base: base, stop: stop}
}

// Close cancels pending retries and running attempts.
func (s *Sender) Close() {
	s.stop()
	s.work.Wait()
	s.client.CloseIdleConnections()
}

// Send delivers one message. Without a delay it returns the outcome of each first attempt; with one it
// returns nothing and works in the background. Retries are always made in the background.
func (s *Sender) Send(set *Set, p Policy, h Hook, m Message, o Options) []Delivery {
	times := max(o.Repeat, 1)
	if o.DelayMS > 0 {
		s.background(time.Duration(o.DelayMS)*time.Millisecond, func() {
			for range times {
				s.attempt(set, p, h, m, o, 0)
			}
		})
		return nil
	}
	sent := make([]Delivery, 0, times)
	for range times {
		sent = append(sent, s.attempt(set, p, h, m, o, 0))
	}
	return sent
}

// attempt makes one attempt, counts its outcome and schedules the next one.
func (s *Sender) attempt(set *Set, p Policy, h Hook, m Message, o Options, retry int) Delivery {
	d := s.Post(p.Timeout, h, m.header(o), m.payload(o))
	switch {
	case d.Error == "" && p.OK(d.Status):
		set.countResult(h.ID, true)
	case o.Forge != "": // a forgery is not retried, and the subscription is not to blame
	case retry < len(p.Retries):
		s.background(p.Retries[retry], func() { s.attempt(set, p, h, m, o, retry+1) })
	default:
		failures := set.countResult(h.ID, false)
		if p.Failed != nil {
			p.Failed(set, h.ID, failures)
		}
	}
	return d
}

func (s *Sender) background(after time.Duration, do func()) {
	if s.base.Err() != nil {
		return
	}
	s.work.Go(func() {
		if backoff.Sleep(s.base, after) == nil {
			do()
		}
	})
}

func (m Message) header(o Options) http.Header {
	h := m.Header.Clone()
	if m.DeliveryIDHeader != "" {
		h.Set(m.DeliveryIDHeader, "wh-"+rand.Text())
	}
	secret := m.Secret
	if o.Forge == ForgeSignature {
		secret += "-forged"
	}
	if o.Forge != ForgeMissing {
		h.Set(m.SignatureHeader, m.Sign(secret, m.Body))
	}
	return h
}

func (m Message) payload(o Options) []byte {
	if o.Forge == ForgeBody {
		return append(bytes.Clone(m.Body), '\n')
	}
	return m.Body
}

// Post makes one attempt at a hook's URL.
func (s *Sender) Post(timeout time.Duration, h Hook, headers http.Header, body []byte) Delivery {
	target := s.target(h.URL)
	d := Delivery{URL: target, Topic: h.Topic}
	ctx, cancel := context.WithTimeout(s.base, timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(body))
	if err != nil {
		d.Error = err.Error()
		return d
	}
	r.Header = headers
	res, err := s.client.Do(r)
	if err != nil {
		d.Error = err.Error()
		return d
	}
	_ = res.Body.Close() // only the status counts
	d.Status = res.StatusCode
	return d
}

func (s *Sender) target(registered string) string {
	u, err := url.Parse(registered)
	if s.receiver == "" || err != nil {
		return registered
	}
	return s.receiver + u.EscapedPath()
}
