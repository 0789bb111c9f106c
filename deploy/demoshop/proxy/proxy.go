// Package proxy stands between the demo shop's pages and the edge. It forwards every request, tells what
// became of each batch of signals, and breaks the way in the ways that a person chooses. It changes neither
// requests nor answers.
package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	"storefront.internal/deploy/demoshop/trail"
)

// Fault is a way in which the proxy is broken.
type Fault string

// The faults.
const (
	None        Fault = ""
	Off         Fault = "network-off" // every connection is closed
	Unavailable Fault = "unavailable" // every request of signals is answered 503
	CutAnswer   Fault = "cut-answer"  // the next batch reaches the edge, and its answer is lost
)

const (
	maxBody = 256 << 10 // the edge refuses more
	timeout = 20 * time.Second
)

// Proxy forwards to one edge.
type Proxy struct {
	edge    *url.URL
	forward *httputil.ReverseProxy
	trail   *trail.Trail
	client  *http.Client
	now     func() time.Time

	mu    sync.Mutex
	fault Fault
	until time.Time // of the fault; zero: until it is taken away
	last  *batch    // the newest one that the edge answered
}

// batch is a request of operation 1.
type batch struct {
	uri     string
	header  http.Header
	body    []byte
	signals []trail.Signal
}

// New makes a proxy before the edge at a base URL.
func New(edge *url.URL, t *trail.Trail) *Proxy {
	return &Proxy{edge: edge, forward: httputil.NewSingleHostReverseProxy(edge), trail: t,
		client: &http.Client{Timeout: timeout}, now: time.Now}
}

// Break sets the fault; a duration of 0 has no end.
func (p *Proxy) Break(f Fault, d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault, p.until = f, time.Time{}
	if d > 0 {
		p.until = p.now().Add(d)
	}
}

// Fault is the present fault and the time that is left of it; 0 has no end.
func (p *Proxy) Fault() (Fault, time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.until.IsZero() {
		return p.fault, 0
	}
	left := p.until.Sub(p.now())
	if left <= 0 {
		p.fault, p.until, left = None, time.Time{}, 0
	}
	return p.fault, left
}

// ServeHTTP forwards one request.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fault, left := p.Fault()
	signals := r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/storefront-signals")
	switch {
	case signals:
		p.serveBatch(w, r, fault, left)
	case fault == Off:
		panic(http.ErrAbortHandler) // closes the connection
	default:
		p.forward.ServeHTTP(w, r)
	}
}

func (p *Proxy) serveBatch(w http.ResponseWriter, r *http.Request, fault Fault, left time.Duration) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	b := &batch{uri: r.URL.RequestURI(), header: r.Header.Clone(), body: body, signals: signalsOf(body)}
	begin := p.now()
	tell := func(a answer) {
		p.tell(b, trail.Attempt{At: begin.UTC(), Form: formOf(r), MS: p.now().Sub(begin).Milliseconds()}, a)
	}
	switch fault {
	case Off:
		tell(answer{outcome: "no answer"})
		panic(http.ErrAbortHandler)
	case Unavailable:
		tell(answer{outcome: "503"})
		writeUnavailable(w, left)
		return
	case CutAnswer:
		p.Break(None, 0)
	case None:
	}
	// The answer is awaited even when the page is gone: it says what the edge did.
	a := p.send(context.WithoutCancel(r.Context()), b)
	if fault == CutAnswer {
		tell(answer{outcome: "answer cut"})
		panic(http.ErrAbortHandler)
	}
	tell(a)
	a.write(w)
}

// SendTwice sends the newest batch once more, as a network that repeats itself would.
func (p *Proxy) SendTwice(ctx context.Context) error {
	p.mu.Lock()
	b := p.last
	p.mu.Unlock()
	if b == nil {
		return errors.New("nothing was sent yet")
	}
	begin := p.now()
	a := p.send(ctx, b)
	p.tell(b, trail.Attempt{At: begin.UTC(), Form: "sent twice", MS: p.now().Sub(begin).Milliseconds()}, a)
	return a.err
}

// send forwards a batch to the edge.
func (p *Proxy) send(ctx context.Context, b *batch) answer {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.edge.JoinPath("/").String(),
		bytes.NewReader(b.body))
	if err != nil {
		return answer{outcome: "no answer", err: err}
	}
	if r.URL, err = p.edge.Parse(b.uri); err != nil {
		return answer{outcome: "no answer", err: err}
	}
	r.Header = b.header.Clone()
	res, err := p.client.Do(r)
	if err != nil {
		return answer{outcome: "no answer", err: err}
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return answer{outcome: "no answer", err: err}
	}
	if res.StatusCode == http.StatusAccepted {
		p.mu.Lock()
		p.last = b
		p.mu.Unlock()
	}
	return answer{status: res.StatusCode, header: res.Header, body: body}
}

// tell puts the attempt on the trail of each signal of the batch.
func (p *Proxy) tell(b *batch, attempt trail.Attempt, a answer) {
	results := a.results()
	for i, s := range b.signals {
		if s.SignalID == "" {
			continue
		}
		attempt.Outcome, attempt.Reason = a.text(), ""
		if i < len(results) {
			attempt.Outcome, attempt.Reason = results[i].Status, results[i].Reason
		}
		p.trail.Sent(s, attempt)
	}
}

func signalsOf(body []byte) []trail.Signal {
	var batch struct {
		Signals []trail.Signal `json:"signals"`
	}
	_ = json.Unmarshal(body, &batch) // the edge says what is wrong with it
	return batch.Signals
}

// formOf names the form of a request: a beacon is the one that cannot read its answer.
func formOf(r *http.Request) string {
	switch {
	case r.Header.Get("Sec-Fetch-Mode") == "no-cors":
		return "beacon"
	case strings.HasPrefix(r.Header.Get("Content-Type"), "text/plain"):
		return "text/plain"
	default:
		return "JSON"
	}
}
