package shop

import (
	"context"
	"errors"
	"math"
	"net/http"
	"sync"
	"time"

	"storefront.internal/deploy/demoshop/proxy"
	"storefront.internal/deploy/stack/client"
)

const (
	unavailableFor = 10 * time.Second
	silentRequests = 2
	silentMS       = 4000
)

// The faults at the engine.
const (
	engineToken  = "engine-token"  // the engine refuses its token
	engineSilent = "engine-silent" // the engine takes the next requests and does not answer
	sendTwice    = "send-twice"    // no fault that lasts: the newest batch is sent once more
)

// breakOrMend switches a fault on, or off when it is on.
func (s *Shop) breakOrMend(w http.ResponseWriter, r *http.Request) {
	ctx, name := r.Context(), r.PathValue("name")
	var err error
	switch name {
	case string(proxy.Off), string(proxy.CutAnswer):
		s.toggle(proxy.Fault(name), 0)
	case string(proxy.Unavailable):
		s.toggle(proxy.Unavailable, unavailableFor)
	case sendTwice:
		err = s.proxy.SendTwice(ctx)
	case engineToken:
		err = s.engine.toggleToken(ctx)
	case engineSilent:
		err = s.engine.silence(ctx)
	default:
		http.NotFound(w, r)
		return
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (s *Shop) toggle(f proxy.Fault, d time.Duration) {
	if now, _ := s.proxy.Fault(); now == f {
		f, d = proxy.None, 0
	}
	s.proxy.Break(f, d)
}

// faults are those that are on, with the seconds that are left; 0 has no end.
func (s *Shop) faults() map[string]int {
	all := map[string]int{}
	if f, left := s.proxy.Fault(); f != proxy.None {
		all[string(f)] = int(math.Ceil(left.Seconds()))
	}
	if s.engine.refuses() {
		all[engineToken] = 0
	}
	return all
}

// engineFaults breaks the demo engine by its debug route.
type engineFaults struct {
	url     string
	control client.Internal

	mu       sync.Mutex
	refusing bool
}

func newEngineFaults(url string, control client.Internal) *engineFaults {
	return &engineFaults{url: url, control: control}
}

func (e *engineFaults) refuses() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.refusing
}

// toggleToken lets the engine refuse its token, or accept it again; then delivery is resumed as an operator
// resumes it.
func (e *engineFaults) toggleToken(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.refusing {
		err := e.behave(ctx, map[string]any{"status": http.StatusUnauthorized})
		e.refusing = err == nil
		return err
	}
	if err := e.behave(ctx, map[string]any{}); err != nil {
		return err
	}
	e.refusing = false
	err := e.control.ResumeDelivery(ctx)
	var status *client.StatusError
	if errors.As(err, &status) && status.Status == http.StatusConflict {
		return nil // nothing was delivered meanwhile, so delivery was never blocked
	}
	return err
}

// silence lets the engine take the next requests and not answer.
func (e *engineFaults) silence(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.refusing = false // one behaviour replaces the other
	return e.behave(ctx, map[string]any{"after_effect": true, "hang_ms": silentMS, "times": silentRequests})
}

func (e *engineFaults) behave(ctx context.Context, interactions map[string]any) error {
	return client.Call(ctx, nil, client.Request{Method: http.MethodPost, URL: e.url + "/debug/behaviour",
		Timeout: 5 * time.Second, Body: map[string]any{"interactions": interactions}}, nil)
}
