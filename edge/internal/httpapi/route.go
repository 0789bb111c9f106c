package httpapi

import (
	"bytes"
	"strings"

	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/storekey"
)

// Route is a row of the public surface; edge/openapi.yaml says the same.
type Route struct {
	Method    string
	Path      string
	Operation string         // the operationId, also the metric label
	Scope     storekey.Scope // empty: no credential

	unavailable fault.Code // what a 503 of this operation is called
	catalog     bool       // has the catalog's own limit of what is in work
	beacon      bool       // takes text/plain with ?key= too
	batch       bool       // the body tells how dear the request is
	handle      func(*Server, *exchange) error
}

// Routes returns the table.
func Routes() []Route {
	return []Route{
		{Method: "POST", Path: "/v1/connections/{connection_id}/storefront-signals", Operation: "recordStorefrontSignals",
			Scope: storekey.SignalsWrite, unavailable: fault.SignalsUnavailable, beacon: true, batch: true, handle: (*Server).recordSignals},
		{Method: "POST", Path: "/v1/connections/{connection_id}/recommendations", Operation: "getRecommendations",
			Scope: storekey.RecommendationsRead, unavailable: fault.ServiceUnavailable, handle: (*Server).recommend},
		{Method: "GET", Path: "/v1/catalog/items/{item_id}", Operation: "getCatalogItem",
			Scope: storekey.CatalogRead, unavailable: fault.ServiceUnavailable, catalog: true, handle: (*Server).readItem},
		{Method: "GET", Path: "/healthz", Operation: "getHealth", unavailable: fault.ServiceUnavailable, handle: (*Server).health},
	}
}

// segment is one part of a path: a literal, or an identifier of a kind.
type segment struct {
	literal string
	prefix  ident.Prefix
}

type compiledRoute struct {
	Route
	segments []segment
}

// router matches paths as they were sent: nothing is decoded or cleaned, so an escape or an empty segment fits no
// route.
type router struct{ routes []compiledRoute }

func newRouter(routes []Route) *router {
	var r router
	for _, route := range routes {
		c := compiledRoute{Route: route}
		for _, part := range strings.Split(route.Path[1:], "/") {
			c.segments = append(c.segments, compileSegment(part))
		}
		r.routes = append(r.routes, c)
	}
	return &r
}

func compileSegment(part string) segment {
	switch part {
	case "{connection_id}":
		return segment{prefix: ident.Connection}
	case "{item_id}":
		return segment{prefix: ident.Item}
	}
	return segment{literal: part}
}

// match returns the route of path and method, with the identifier that the path held. Without a route, allow is the
// methods that the path knows: empty when it is no path of ours.
func (r *router) match(method string, path []byte) (route *Route, id string, allow []string) {
	if method == "HEAD" {
		method = "GET"
	}
	for i := range r.routes {
		c := &r.routes[i]
		found, ok := c.fits(path)
		if !ok {
			continue
		}
		if c.Method == method {
			return &c.Route, string(found), nil
		}
		allow = append(allow, c.Method)
		if c.Method == "GET" {
			allow = append(allow, "HEAD")
		}
	}
	return nil, "", allow
}

// fits reports whether the path is the route's, and the bytes of its identifier.
func (c *compiledRoute) fits(path []byte) (id []byte, ok bool) {
	rest := path
	for _, s := range c.segments {
		if len(rest) == 0 || rest[0] != '/' {
			return nil, false
		}
		part := rest[1:]
		if i := bytes.IndexByte(part, '/'); i >= 0 {
			part = part[:i]
		}
		rest = rest[1+len(part):]
		switch {
		case s.literal != "" && string(part) != s.literal:
			return nil, false
		case s.literal == "":
			if !ident.ValidBytes(s.prefix, part) {
				return nil, false
			}
			id = part
		}
	}
	return id, len(rest) == 0
}

// target splits a request target as it was sent. The authority of an absolute form is left out; it decides nothing.
func target(uri []byte) (path, query []byte) {
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
