package hooks

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Policy is how a provider delivers.
type Policy struct {
	Timeout time.Duration
	Retries []time.Duration // before each further attempt
	OK      func(status int) bool
	// Failed is told when the last attempt failed, with the failed deliveries in a row.
	Failed func(s *Set, id int64, inARow int)
}

// Options are the liberties that a debug request takes.
type Options struct {
	Repeat  int    // so many deliveries of the same body; 0 is 1
	Forge   string // "": honest; see Forge* below
	DelayMS int    // waits before the first; so a later one may overtake
}

// What can be wrong with a delivery.
const (
	ForgeSignature = "signature" // signed with another secret
	ForgeBody      = "body"      // a newline was added after signing
	ForgeMissing   = "missing"   // no signature at all
)

// Message is one delivery as it leaves: Sign answers the headers of a body under a secret.
type Message struct {
	Hook            Hook
	Secret          string
	Body            []byte
	Sign            func(secret string, body []byte) http.Header
	SignatureHeader string
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

// NewSender makes a sender. With a receiver ("http://host:port/prefix") the path of a subscription's URL is delivered there.
func NewSender(receiver string) *Sender {
	base, stop := context.WithCancel(context.Background())
	transport := &http.Transport{Proxy: nil, MaxIdleConnsPerHost: 8, IdleConnTimeout: 10 * time.Second}
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return &Sender{client: client, receiver: strings.TrimSuffix(receiver, "/"), base: base, stop: stop}
}

// Close ends what waits and what is under way.
func (s *Sender) Close() {
	s.stop()
	s.work.Wait()
	s.client.CloseIdleConnections()
}

// Send delivers one message. Without a delay it answers what each first attempt came to; with one it answers nothing and works in the
// background. Retries are always made in the background.
func (s *Sender) Send(set *Set, p Policy, m Message, o Options) []Delivery {
	times := max(o.Repeat, 1)
	if o.DelayMS > 0 {
		s.background(time.Duration(o.DelayMS)*time.Millisecond, func() {
			for range times {
				s.first(set, p, m, o)
			}
		})
		return nil
	}
	sent := make([]Delivery, 0, times)
	for range times {
		sent = append(sent, s.first(set, p, m, o))
	}
	return sent
}

func (s *Sender) first(set *Set, p Policy, m Message, o Options) Delivery {
	d := s.Post(p.Timeout, m.Hook, m.headers(o), m.payload(o))
	s.settle(set, p, m, o, d, 0)
	return d
}

// settle counts the end of a delivery, or has it tried again.
func (s *Sender) settle(set *Set, p Policy, m Message, o Options, d Delivery, attempt int) {
	switch {
	case d.Error == "" && p.OK(d.Status):
		set.note(m.Hook.ID, true)
	case o.Forge != "": // nobody repeats a forgery, and the subscription is not to blame
	case attempt < len(p.Retries):
		s.background(p.Retries[attempt], func() {
			s.settle(set, p, m, o, s.Post(p.Timeout, m.Hook, m.headers(o), m.payload(o)), attempt+1)
		})
	default:
		failures := set.note(m.Hook.ID, false)
		if p.Failed != nil {
			p.Failed(set, m.Hook.ID, failures)
		}
	}
}

func (s *Sender) background(after time.Duration, do func()) {
	if s.base.Err() != nil {
		return
	}
	s.work.Go(func() {
		timer := time.NewTimer(after)
		defer timer.Stop()
		select {
		case <-timer.C:
			do()
		case <-s.base.Done():
		}
	})
}

func (m Message) headers(o Options) http.Header {
	secret := m.Secret
	if o.Forge == ForgeSignature {
		secret += "-forged"
	}
	h := m.Sign(secret, m.Body)
	if o.Forge == ForgeMissing {
		h.Del(m.SignatureHeader)
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
