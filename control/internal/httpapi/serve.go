package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"

	"storefront.internal/control/internal/principal"
	"storefront.internal/shared/fault"
)

// handler answers one operation.
type handler func(ctx context.Context, r *request) (reply, error)

// request is what a handler may know of one.
type request struct {
	http   *http.Request
	params params
}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ev := a.begin(r)
	w.Header().Set("X-Request-Id", ev.requestID)
	r.Body = http.MaxBytesReader(w, r.Body, maxBodyBytes)
	rep, err := a.guarded(w, r, ev)
	if err != nil {
		rep = a.problem(w.Header(), ev, err)
	}
	ev.bytes = rep.write(w)
	a.end(ev, rep.status)
}

// guarded turns a panic into an internal error. The panic's value may quote a request, so only its type is logged.
func (a *API) guarded(w http.ResponseWriter, r *http.Request, ev *event) (rep reply, err error) {
	defer func() {
		if v := recover(); v != nil {
			a.cfg.Metrics.panics.Inc()
			a.cfg.Logger.Error("handler panicked", "request_id", ev.requestID, "operation", ev.operation,
				"type", fmt.Sprintf("%T", v), "stack", string(debug.Stack()))
			err = fmt.Errorf("panic of type %T", v)
		}
	}()
	return a.serve(w, r, ev)
}

// serve makes the checks in their order and calls the handler.
func (a *API) serve(w http.ResponseWriter, r *http.Request, ev *event) (reply, error) {
	route, p, allow := a.find(r.Method, r.URL.EscapedPath())
	if route == nil && len(allow) == 0 {
		return reply{}, fault.New(fault.NotFound, "")
	}
	if route == nil {
		w.Header().Set("Allow", strings.Join(allow, ", "))
		return reply{}, fault.New(fault.MethodNotAllowed, "")
	}
	ev.operation, ev.connection = route.operation, p.connection
	identity, ok := a.identify(r.Header)
	ev.identity = identity
	if !ok || identity.Door != route.door {
		w.Header().Set("WWW-Authenticate", "Bearer")
		return reply{}, fault.New(fault.Unauthorized, "")
	}
	if len(r.Header.Values("Content-Encoding")) > 0 {
		return reply{}, fault.New(fault.InvalidRequest, "A request body is sent without Content-Encoding.")
	}
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	return route.handle(ctx, &request{http: r, params: p})
}

// identify returns the holder of the request's bearer token. Two Authorization headers are none.
func (a *API) identify(h http.Header) (principal.Identity, bool) {
	values := h.Values("Authorization")
	if len(values) != 1 {
		return principal.Identity{}, false
	}
	scheme, token, ok := strings.Cut(values[0], " ")
	if !ok || !strings.EqualFold(scheme, "bearer") {
		return principal.Identity{}, false
	}
	return a.cfg.Principals.Identify([]byte(strings.TrimLeft(token, " ")))
}
