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

// observations is the path of operation 4. A connection_id of any form meets it: what is no connection is a 401, and every
// answer is application/json (contract, section 1).
const observations = "/internal/v1/connections/{connection_id}/observations"

func (r *route) plain() bool { return r.pattern == observations }

// limit is the largest body of the operation.
func (r *route) limit() int64 {
	switch r.pattern {
	case observations:
		return maxObservationsBody
	case webhooks:
		return maxWebhookBody
	}
	return maxBodyBytes
}

// table is every operation of the surface. openapi.yaml says the same; a test compares both.
func (a *API) table() []route {
	const (
		connections = "/internal/v1/connections"
		oneConn     = connections + "/{connection_id}"
		interaction = "/internal/v1/brain-interactions"
	)
	const observed = "/internal/v1/observations/{observation_id}"
	return []route{
		{http.MethodPost, observations, "deliver_observations", principal.Custom, a.deliverObservations},
		{http.MethodGet, observed + "/canonical", "read_canonical", principal.Engine, a.canonicalSnapshot},
		{http.MethodGet, observed + "/raw", "read_raw", principal.Engine, a.rawSnapshot},
		{http.MethodGet, oneConn + "/quarantine", "list_quarantine", principal.Connector, a.listQuarantine},
		{http.MethodPost, oneConn + "/quarantine/{observation_id}/replay", "replay_quarantined", principal.Connector, a.replayQuarantined},
		{http.MethodPost, oneConn + "/api-keys", "issue_key", principal.Backend, a.issueKey},
		{http.MethodGet, oneConn + "/api-keys", "list_keys", principal.Backend, a.listKeys},
		{http.MethodDelete, oneConn + "/api-keys/{api_key_id}", "revoke_key", principal.Backend, a.revokeKey},
		{http.MethodPost, connections, "create_connection", principal.Connector, a.createConnection},
		{http.MethodPost, "/internal/v1/installations", "open_installation", principal.Connector, a.openInstallation},
		{http.MethodGet, oneConn, "view_connection", principal.Connector, a.viewConnection},
		{http.MethodPost, oneConn + "/bootstrap", "open_bootstrap", principal.Connector, a.openLoad},
		{http.MethodGet, oneConn + "/bootstrap/{bootstrap_run_id}", "view_bootstrap", principal.Connector, a.viewLoad},
		{http.MethodPost, webhooks, "deliver_webhook", principal.Connector, a.deliverWebhook},
		{http.MethodDelete, oneConn + "/visitors/{visitor_id}", "erase_visitor", principal.Connector, a.eraseVisitor},
		{http.MethodPost, oneConn + "/token", "rotate_token", principal.Connector, a.rotateToken},
		{http.MethodGet, interaction + "/queue", "view_queue", principal.Backend, a.viewQueue},
		{http.MethodPost, interaction + "/resume", "resume_delivery", principal.Connector, a.resumeDelivery},
		{http.MethodGet, interaction + "/dead", "list_dead", principal.Connector, a.listDead},
		{http.MethodPost, interaction + "/dead/replay", "replay_dead", principal.Connector, a.replayDead},
	}
}

// params are the identifiers of a path.
type params struct {
	connection  ident.ConnectionID
	key         ident.KeyID
	observation ident.ObservationID
	run         ident.RunID
	visitor     ident.VisitorID
	provider    string // of operation 12: any text
	endpoint    string // of operation 12: any text
}

// place is what a path leads to.
type place struct {
	route  *route // nil without one for the method
	params params
	allow  []string // the methods that the path has; empty when the path is unknown
	plain  bool     // the path is operation 4's
}

// find looks a path up as it was sent: nothing is decoded or cleaned, so that "%2f", an empty segment or a dot segment
// meets no route.
func (a *API) find(method, escapedPath string) (found place) {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	for i := range a.routes {
		r := &a.routes[i]
		got, ok := match(r, escapedPath)
		if !ok {
			continue
		}
		found.plain = found.plain || r.plain()
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
		if fits := p.take(want, got); !fits && (want != "{connection_id}" || !r.plain()) {
			return params{}, false
		}
		if !morePattern {
			return p, true
		}
		pattern, path = restPattern, restPath
	}
}

// take matches one segment; an identifier must fit its form, or it is not taken.
func (p *params) take(want, got string) (fits bool) {
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
	case "{provider}":
		p.provider = got
		return got != ""
	case "{endpoint_id}":
		p.endpoint = got
		return got != ""
	}
	return want == got
}
