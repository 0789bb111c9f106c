package httpapi

import (
	"net/http"
	"slices"
	"strings"

	"storefront.internal/control/internal/principal"
	"storefront.internal/control/internal/webhook"
	"storefront.internal/shared/ident"
)

// route is one operation: its path and who may call it.
type route struct {
	method    string
	pattern   string // as in openapi.yaml
	operation string // the document's operationId; a metric label
	role      principal.Role
	handle    handler
}

// observations is the path of deliver_observations. It takes a connection_id of any form: an unknown one is a
// 401, and every answer is application/json.
const observations = "/internal/v1/connections/{connection_id}/observations"

func (r *route) plainErrors() bool { return r.pattern == observations }

// limit is the largest body of the operation, in bytes.
func (r *route) limit() int64 {
	switch r.pattern {
	case observations:
		return maxObservationsBody
	case webhooks:
		return webhook.MaxBody
	}
	return maxBodyBytes
}

// table returns every operation. A test compares it with openapi.yaml.
func (a *API) table() []route {
	const (
		connections = "/internal/v1/connections"
		oneConn     = connections + "/{connection_id}"
		interaction = "/internal/v1/brain-interactions"

		parkedRecords = "/internal/v1/parked"
		oneParked     = parkedRecords + "/{parked_id}"
	)
	const observed = "/internal/v1/observations/{observation_id}"
	return []route{
		{http.MethodPost, observations, "deliver_observations", principal.Custom, a.deliverObservations},
		{http.MethodGet, observed + "/canonical", "read_canonical", principal.Engine, a.canonicalSnapshot},
		{http.MethodGet, observed + "/raw", "read_raw", principal.Engine, a.rawSnapshot},
		{http.MethodGet, oneConn + "/quarantine", "list_quarantine", principal.Connector, a.listQuarantine},
		{http.MethodPost, oneConn + "/quarantine/{observation_id}/replay", "replay_quarantined",
			principal.Connector, a.replayQuarantined},
		{http.MethodPost, oneConn + "/api-keys", "issue_key", principal.Backend, a.issueKey},
		{http.MethodGet, oneConn + "/api-keys", "list_keys", principal.Backend, a.listKeys},
		{http.MethodDelete, oneConn + "/api-keys/{api_key_id}", "revoke_key", principal.Backend, a.revokeKey},
		{http.MethodPost, connections, "create_connection", principal.Connector, a.createConnection},
		{http.MethodGet, connections, "list_connections", principal.ConnectorOrBackend, a.listConnections},
		{http.MethodPost, "/internal/v1/installations", "open_installation", principal.Connector,
			a.openInstallation},
		{http.MethodGet, oneConn, "view_connection", principal.Connector, a.viewConnection},
		{http.MethodPost, oneConn + "/bootstrap", "open_bootstrap", principal.Connector, a.openBootstrap},
		{http.MethodGet, oneConn + "/bootstrap/{bootstrap_run_id}", "view_bootstrap",
			principal.Connector, a.viewBootstrap},
		{http.MethodPost, webhooks, "deliver_webhook", principal.Connector, a.deliverWebhook},
		{http.MethodDelete, oneConn + "/visitors/{visitor_id}", "erase_visitor",
			principal.Connector, a.eraseVisitor},
		{http.MethodPost, oneConn + "/token", "rotate_token", principal.Connector, a.rotateToken},
		{http.MethodGet, interaction + "/queue", "view_queue", principal.Backend, a.viewQueue},
		{http.MethodPost, interaction + "/resume", "resume_delivery", principal.Connector, a.resumeDelivery},
		{http.MethodGet, interaction + "/dead", "list_dead", principal.Connector, a.listDead},
		{http.MethodPost, interaction + "/dead/replay", "replay_dead", principal.Connector, a.replayDead},
		{http.MethodGet, parkedRecords, "list_parked", principal.Connector, a.listParked},
		{http.MethodGet, oneParked, "show_parked", principal.Connector, a.showParked},
		{http.MethodDelete, oneParked, "drop_parked", principal.Connector, a.dropParked},
		{http.MethodPost, oneParked + "/replay", "replay_parked", principal.Connector, a.replayParked},
	}
}

// params are the identifiers of a path.
type params struct {
	connection  ident.ConnectionID
	key         ident.KeyID
	observation ident.ObservationID
	run         ident.RunID
	visitor     ident.VisitorID
	parked      int64
	provider    string // of deliver_webhook: any text
	endpoint    string // of deliver_webhook: any text
}

// routeMatch is the result of looking up a path.
type routeMatch struct {
	route       *route // nil when the path has no such method
	params      params
	allow       []string // the methods that the path has; empty when the path is unknown
	plainErrors bool     // the path is that of deliver_observations
}

// find looks up a path as it was sent. Nothing is decoded or cleaned, so a path with "%2f", an empty segment
// or a dot segment has no route.
func (a *API) find(method, escapedPath string) (found routeMatch) {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	for i := range a.routes {
		r := &a.routes[i]
		got, ok := match(r, escapedPath)
		if !ok {
			continue
		}
		found.plainErrors = found.plainErrors || r.plainErrors()
		found.allow = append(found.allow, r.method)
		if r.method == http.MethodGet {
			found.allow = append(found.allow, http.MethodHead)
		}
		if r.method == method {
			found.route, found.params = r, got
		}
	}
	slices.Sort(found.allow)
	return found
}

func match(r *route, path string) (p params, ok bool) {
	for pattern := r.pattern; ; {
		want, restPattern, morePattern := strings.Cut(pattern, "/")
		got, restPath, morePath := strings.Cut(path, "/")
		if morePattern != morePath {
			return params{}, false
		}
		if fits := p.matchSegment(want, got); !fits && (want != "{connection_id}" || !r.plainErrors()) {
			return params{}, false
		}
		if !morePattern {
			return p, true
		}
		pattern, path = restPattern, restPath
	}
}

// matchSegment matches one segment; an identifier must have its form.
func (p *params) matchSegment(want, got string) (fits bool) {
	switch want {
	case "{connection_id}":
		if fits = ident.Valid(ident.Connection, got); fits {
			p.connection = ident.ConnectionID(got)
		}
		return fits
	case "{api_key_id}":
		p.key = ident.KeyID(got)
		return ident.Valid(ident.Key, got)
	case "{observation_id}":
		p.observation = ident.ObservationID(got)
		return ident.Valid(ident.Observation, got)
	case "{bootstrap_run_id}":
		p.run = ident.RunID(got)
		return ident.Valid(ident.Run, got)
	case "{visitor_id}":
		p.visitor = ident.VisitorID(got)
		return ident.Valid(ident.Visitor, got)
	case "{parked_id}":
		p.parked, fits = parseParkedID(got)
		return fits
	case "{provider}":
		p.provider = got
		return got != ""
	case "{endpoint_id}":
		p.endpoint = got
		return got != ""
	}
	return want == got
}
