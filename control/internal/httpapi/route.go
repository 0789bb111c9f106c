package httpapi

import (
	"net/http"
	"slices"
	"strings"

	"storefront.internal/control/internal/principal"
	"storefront.internal/shared/ident"
)

// route is one operation: where it answers and who may call it.
type route struct {
	method    string
	pattern   string // as in openapi.yaml
	operation string // the document's operationId; a metric label
	door      principal.Door
	handle    handler
}

// table is every operation of the surface. openapi.yaml says the same; a test compares both.
func (a *API) table() []route {
	const (
		connections = "/internal/v1/connections"
		oneConn     = connections + "/{connection_id}"
		interaction = "/internal/v1/brain-interactions"
	)
	return []route{
		{http.MethodPost, oneConn + "/api-keys", "issue_key", principal.Backend, a.issueKey},
		{http.MethodGet, oneConn + "/api-keys", "list_keys", principal.Backend, a.listKeys},
		{http.MethodDelete, oneConn + "/api-keys/{api_key_id}", "revoke_key", principal.Backend, a.revokeKey},
		{http.MethodPost, connections, "create_connection", principal.Connector, a.createConnection},
		{http.MethodPost, oneConn + "/token", "rotate_token", principal.Connector, a.rotateToken},
		{http.MethodGet, interaction + "/queue", "view_queue", principal.Backend, a.viewQueue},
		{http.MethodPost, interaction + "/resume", "resume_delivery", principal.Connector, a.resumeDelivery},
		{http.MethodGet, interaction + "/dead", "list_dead", principal.Connector, a.listDead},
		{http.MethodPost, interaction + "/dead/replay", "replay_dead", principal.Connector, a.replayDead},
	}
}

// params are the identifiers of a path.
type params struct {
	connection ident.ConnectionID
	key        ident.KeyID
}

// find returns the route for a path as it was sent: nothing is decoded or cleaned, so that "%2f", an empty segment or
// a dot segment meets no route. Without a route for the method, allow names those that the path has; without any, the
// path is unknown.
func (a *API) find(method, escapedPath string) (found *route, p params, allow []string) {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	for i := range a.routes {
		r := &a.routes[i]
		got, ok := match(r.pattern, escapedPath)
		if !ok {
			continue
		}
		if r.method == method {
			return r, got, nil
		}
		allow = append(allow, r.method)
		if r.method == http.MethodGet {
			allow = append(allow, http.MethodHead)
		}
	}
	slices.Sort(allow)
	return nil, params{}, allow
}

func match(pattern, path string) (p params, ok bool) {
	for {
		want, restPattern, morePattern := strings.Cut(pattern, "/")
		got, restPath, morePath := strings.Cut(path, "/")
		if morePattern != morePath || !p.take(want, got) {
			return params{}, false
		}
		if !morePattern {
			return p, true
		}
		pattern, path = restPattern, restPath
	}
}

// take matches one segment; an identifier must fit its form.
func (p *params) take(want, got string) bool {
	switch want {
	case "{connection_id}":
		p.connection = ident.ConnectionID(got)
		return ident.Valid(ident.Connection, got)
	case "{api_key_id}":
		p.key = ident.KeyID(got)
		return ident.Valid(ident.Key, got)
	}
	return want == got
}
