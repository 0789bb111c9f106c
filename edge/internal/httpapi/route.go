package httpapi

import (
	"bytes"
	"strings"

	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/storekey"
)

// Route is an operation of the public surface; edge/openapi.yaml describes the same.
type Route struct {
	Method    string
	Path      string
	Operation string         // the operationId, also the metric label
	Scope     storekey.Scope // empty: no credential

	unavailable fault.Code // of a 503 of this operation
	catalog     bool       // has the overload limit of catalog reads
	beacon      bool       // accepts text/plain with ?key= too
	batch       bool       // the body decides the priority
	dryRun      bool       // is shed first
	file        bool       // the rest of the path names a file
	handle      func(*Server, *requestContext) error
}

// Routes returns all routes.
func Routes() []Route {
	return []Route{
		{Method: "POST", Path: "/v1/connections/{connection_id}/storefront-signals",
			Operation: "recordStorefrontSignals", Scope: storekey.SignalsWrite,
			unavailable: fault.SignalsUnavailable, beacon: true, batch: true,
			handle: (*Server).recordSignals},
		{Method: "POST", Path: "/v1/connections/{connection_id}/storefront-signals/check",
			Operation: "checkStorefrontSignals", Scope: storekey.SignalsWrite,
			unavailable: fault.ServiceUnavailable, beacon: true, dryRun: true,
			handle: (*Server).checkSignals},
		{Method: "POST", Path: "/v1/connections/{connection_id}/recommendations",
			Operation: "getRecommendations", Scope: storekey.RecommendationsRead,
			unavailable: fault.ServiceUnavailable, handle: (*Server).recommend},
		{Method: "GET", Path: "/v1/catalog/items/{item_id}",
			Operation: "getCatalogItem", Scope: storekey.CatalogRead,
			unavailable: fault.ServiceUnavailable, catalog: true, handle: (*Server).readItem},
		{Method: "GET", Path: "/v1/sdk/{version}/{file}",
			Operation: "getSDKFile", unavailable: fault.ServiceUnavailable, file: true,
			handle: (*Server).readSDKFile},
		{Method: "GET", Path: "/healthz",
			Operation: "getHealth", unavailable: fault.ServiceUnavailable, handle: (*Server).health},
	}
}

// compiledRoute is a route whose path is cut at its identifier.
type compiledRoute struct {
	Route
	before, after []byte
	id            ident.Prefix // empty: the path has no identifier
}

// router matches paths as they were sent: nothing is decoded or cleaned, so an escape or an empty segment
// matches no route.
type router struct{ routes []compiledRoute }

func newRouter(routes []Route) *router {
	kinds := map[string]ident.Prefix{"connection_id": ident.Connection, "item_id": ident.Item}
	var r router
	for _, route := range routes {
		before, rest, _ := strings.Cut(route.Path, "{")
		name, after, _ := strings.Cut(rest, "}")
		r.routes = append(r.routes,
			compiledRoute{Route: route, before: []byte(before), after: []byte(after), id: kinds[name]})
	}
	return &r
}

// match returns the route of path and method, with the identifier in the path. Without a route, allow is the
// methods of the path, empty for an unknown path.
func (r *router) match(method string, path []byte) (route *Route, id []byte, allow []string) {
	if method == "HEAD" {
		method = "GET"
	}
	for i := range r.routes {
		c := &r.routes[i]
		found, ok := c.match(path)
		if !ok {
			continue
		}
		if c.Method == method {
			return &c.Route, found, nil
		}
		allow = append(allow, c.Method)
		if c.Method == "GET" {
			allow = append(allow, "HEAD")
		}
	}
	return nil, nil, allow
}

// match reports whether the path is the route's, and returns the bytes of its identifier, or of the name of
// the file.
func (c *compiledRoute) match(path []byte) (id []byte, ok bool) {
	if c.file {
		return bytes.CutPrefix(path, c.before)
	}
	if id, ok = bytes.CutPrefix(path, c.before); ok {
		id, ok = bytes.CutSuffix(id, c.after)
	}
	if c.id == "" {
		return nil, ok && len(id) == 0
	}
	return id, ok && ident.ValidBytes(c.id, id)
}

// splitTarget splits a request target as it was sent. The authority of an absolute form is ignored.
func splitTarget(uri []byte) (path, query []byte) {
	path = uri
	if i := bytes.IndexByte(path, '?'); i >= 0 {
		path, query = path[:i], path[i+1:]
	}
	for _, scheme := range []string{"http://", "https://"} {
		if len(path) > len(scheme) && strings.EqualFold(string(path[:len(scheme)]), scheme) {
			path = path[len(scheme):]
			if i := bytes.IndexByte(path, '/'); i >= 0 {
				return path[i:], query
			}
			return nil, query
		}
	}
	return path, query
}
