package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/coder/websocket"
)

// protocol is a client of the DevTools protocol and of WebDriver BiDi: commands with a number, answers with
// the same number, and events.
type protocol struct {
	ws *websocket.Conn

	mu      sync.Mutex
	next    int64
	waiting map[int64]chan message
	heard   map[string]func(message) // by session
	closed  chan struct{}
}

type message struct {
	ID        int64           `json:"id,omitempty"`
	Session   string          `json:"sessionId,omitempty"` // DevTools
	Method    string          `json:"method,omitempty"`
	Params    json.RawMessage `json:"params,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	Error     json.RawMessage `json:"error,omitempty"`
	ErrorText string          `json:"message,omitempty"` // BiDi
}

const maxMessage = 64 << 20

func dial(ctx context.Context, url string) (*protocol, error) {
	ws, _, err := websocket.Dial(ctx, url, nil) //nolint:bodyclose // the library closes it
	if err != nil {
		return nil, err
	}
	ws.SetReadLimit(maxMessage)
	p := &protocol{ws: ws, waiting: map[int64]chan message{},
		heard: map[string]func(message){}, closed: make(chan struct{})}
	go p.read()
	return p, nil
}

// read hands each answer to who waits for it, until the browser is gone.
func (p *protocol) read() {
	defer close(p.closed)
	for {
		_, text, err := p.ws.Read(context.Background())
		if err != nil {
			return
		}
		var m message
		if json.Unmarshal(text, &m) != nil {
			continue
		}
		p.mu.Lock()
		answer := p.waiting[m.ID]
		delete(p.waiting, m.ID)
		heard := p.heard[m.Session]
		p.mu.Unlock()
		if m.ID != 0 && answer != nil {
			answer <- m
			continue
		}
		if heard != nil {
			heard(m)
		}
	}
}

// hear calls f with each event of a session; nil ends that. f must not wait.
func (p *protocol) hear(session string, f func(message)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f == nil {
		delete(p.heard, session)
		return
	}
	p.heard[session] = f
}

// call sends a command and decodes its result into out, which may be nil.
func (p *protocol) call(ctx context.Context, session, method string, params, out any) error {
	encoded, err := json.Marshal(params)
	if err != nil {
		return err
	}
	answer := make(chan message, 1)
	p.mu.Lock()
	p.next++
	id := p.next
	p.waiting[id] = answer
	p.mu.Unlock()
	text, err := json.Marshal(message{ID: id, Session: session, Method: method, Params: encoded})
	if err != nil {
		return err
	}
	// A write whose context ends closes the whole connection; it is short, so it gets one without an end.
	if err := p.ws.Write(context.WithoutCancel(ctx), websocket.MessageText, text); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	select {
	case m := <-answer:
		if len(m.Error) > 0 && string(m.Error) != "null" {
			return fmt.Errorf("%s: %s %s", method, m.Error, m.ErrorText)
		}
		if out == nil {
			return nil
		}
		return json.Unmarshal(m.Result, out)
	case <-p.closed:
		return fmt.Errorf("%s: the browser is gone", method)
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", method, ctx.Err())
	}
}
