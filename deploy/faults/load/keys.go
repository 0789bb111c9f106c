package load

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"storefront.internal/deploy/faults/history"
)

// keys is a backend that replaces keys: it issues a new one, lets the pages use it, revokes the old one, and goes on asking with
// what was revoked.
func (l *Load) keys(ctx context.Context, client int, random *rand.Rand) {
	for l.rest(ctx, around(random, 5*time.Second)) {
		s, _ := l.two(random)
		k, err := l.issue(ctx, client, s)
		if err != nil {
			continue
		}
		s.mu.Lock()
		old := s.key
		s.key = k
		s.mu.Unlock()
		if !l.rest(ctx, around(random, 2*time.Second)) {
			return
		}
		l.revoke(ctx, client, s, old, random)
		l.askRevoked(ctx, client, s, random)
	}
}

// issue makes a key (operation 6), once: an answer that is lost leaves a key that nobody knows.
func (l *Load) issue(ctx context.Context, client int, s *shop) (key, error) {
	call := l.Recorder.Invoke(history.Event{Op: history.KeyIssue, Client: client, Edge: l.Control.Name, Connection: s.connection})
	a := l.wire.do(ctx, request{method: http.MethodPost, url: l.Control.URL + "/internal/v1/connections/" + s.connection + "/api-keys",
		token: l.BackendToken, within: 10 * time.Second})
	e := a.end(history.KeyIssue)
	var made struct {
		ID     string `json:"api_key_id"`
		Secret string `json:"secret"`
	}
	if a.answered() {
		if err := json.Unmarshal(a.body, &made); err != nil || made.Secret == "" {
			e.Kind, e.Error = history.Info, "a key that cannot be read"
		}
		e.Key = made.ID
	}
	l.Recorder.End(call, e)
	if e.Kind != history.OK {
		return key{}, fmt.Errorf("issue a key: %w: %d %s", errRefused, a.status, e.Error)
	}
	return key{made.ID, made.Secret}, nil
}

// revoke asks until the key is revoked (E4).
func (l *Load) revoke(ctx context.Context, client int, s *shop, k key, random *rand.Rand) {
	for {
		call := l.Recorder.Invoke(history.Event{Op: history.KeyRevoke, Client: client, Edge: l.Control.Name, Connection: s.connection, Key: k.id})
		a := l.wire.do(ctx, request{method: http.MethodDelete, token: l.BackendToken, within: 10 * time.Second,
			url: l.Control.URL + "/internal/v1/connections/" + s.connection + "/api-keys/" + k.id})
		e := a.end(history.KeyRevoke)
		e.Key = k.id
		l.Recorder.End(call, e)
		if a.answered() {
			s.mu.Lock()
			s.retired = append(s.retired, retired{k, time.Now()})
			if len(s.retired) > 4 {
				s.retired = s.retired[1:]
			}
			s.mu.Unlock()
		}
		if a.final() || !wait(ctx, around(random, time.Second)) {
			return
		}
	}
}

// askRevoked reads an item with every key that was revoked lately.
func (l *Load) askRevoked(ctx context.Context, client int, s *shop, random *rand.Rand) {
	s.mu.Lock()
	old := append([]retired(nil), s.retired...)
	s.mu.Unlock()
	item, some := s.item(random)
	if !some {
		return
	}
	for _, k := range old {
		for _, edge := range l.Edges {
			l.read(ctx, client, s, edge, item, k.key, history.Item)
		}
	}
}
