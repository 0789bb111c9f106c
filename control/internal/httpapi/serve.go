package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"

	"storefront.internal/control/internal/connection"
	"storefront.internal/control/internal/principal"
	"storefront.internal/shared/fault"
)

// handler answers one operation.
type handler func(ctx context.Context, r *request) (reply, error)

// request is what a handler sees of a request.
type request struct {
	http   *http.Request
	answer http.ResponseWriter // of the connection that the body comes from
	params params
	caller principal.Identity // the caller with a token of the configuration
	custom connection.Custom  // the connection of a custom connector's token
}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ev := a.begin(r)
	w.Header().Set("X-Request-Id", ev.requestID)
	if len(r.TransferEncoding) > 0 {
		// A proxy that finds another end of a chunked body would take what follows for a request of its own.
		w.Header().Set("Connection", "close")
	}
	rep, err := a.serveRecovered(w, r, ev)
	if err != nil && ev.plainErrors {
		rep = a.plainError(w.Header(), ev, err)
	} else if err != nil {
		rep = a.problem(w.Header(), ev, err)
	}
	ev.bytes = rep.write(w)
	a.end(ev, rep.status)
}

// serveRecovered turns a panic into an internal error. It logs only the type of the panic, whose text may
// quote a request.
func (a *API) serveRecovered(w http.ResponseWriter, r *http.Request, ev *event) (rep reply, err error) {
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
	found := a.find(r.Method, r.URL.EscapedPath())
	ev.plainErrors = found.plainErrors
	limit := int64(maxBodyBytes)
	if found.route != nil {
		limit = found.route.limit()
	} else if found.plainErrors {
		limit = maxObservationsBody
	}
	r.Body = http.MaxBytesReader(w, r.Body, limit)
	if found.route == nil && len(found.allow) == 0 {
		return reply{}, fault.New(fault.NotFound, "")
	}
	if found.route == nil {
		w.Header().Set("Allow", strings.Join(found.allow, ", "))
		return reply{}, fault.New(fault.MethodNotAllowed, "")
	}
	ev.operation, ev.path, ev.connection = found.route.operation, found.route.pattern, found.params.connection
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	if a.cfg.Store != nil {
		var end context.CancelFunc
		ctx, end = a.cfg.Store.WhileUp(ctx)
		defer end()
	}
	req := &request{http: r, answer: w, params: found.params}
	if err := a.authenticate(ctx, found.route.role, req, ev); err != nil {
		if fault.Is(err, fault.Unauthorized) {
			w.Header().Set("WWW-Authenticate", "Bearer")
		}
		return reply{}, err
	}
	if len(r.Header.Values("Content-Encoding")) > 0 {
		return reply{}, fault.New(fault.InvalidRequest, "A request body is sent without Content-Encoding.")
	}
	return found.route.handle(ctx, req)
}

// authenticate checks that the request's token is of a role. A custom connector's token is looked up in
// PostgreSQL, the others in the configuration.
func (a *API) authenticate(ctx context.Context, role principal.Role, r *request, ev *event) (err error) {
	token, ok := bearer(r.http.Header)
	if !ok {
		return fault.New(fault.Unauthorized, "")
	}
	identity, ok := a.cfg.Principals.Identify([]byte(token))
	ev.identity = identity
	if role != principal.Custom {
		if !ok || !role.Admits(identity.Role) {
			return fault.New(fault.Unauthorized, "")
		}
		r.caller = identity
		return nil
	}
	if ok || r.params.connection == "" {
		return fault.New(fault.Unauthorized, "")
	}
	if r.custom, err = a.cfg.Connections.Identify(ctx, r.params.connection, token); err == nil {
		ev.identity = principal.Identity{Role: principal.Custom}
	}
	return err
}

// bearer returns the bearer token. A request with two Authorization headers has none.
func bearer(h http.Header) (token string, ok bool) {
	values := h.Values("Authorization")
	if len(values) != 1 {
		return "", false
	}
	scheme, token, ok := strings.Cut(values[0], " ")
	if !ok || !strings.EqualFold(scheme, "bearer") {
		return "", false
	}
	return strings.TrimLeft(token, " "), true
}
