package httpapi

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"storefront.internal/control/internal/connection"
	"storefront.internal/control/internal/installation"
	"storefront.internal/control/internal/principal"
	"storefront.internal/control/internal/shop"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
)

// defaultPage is how many connections a page has when the query does not say.
const defaultPage = 50

type connectionsPage struct {
	Connections []connectionBody `json:"connections"`
	Cursor      string           `json:"cursor,omitempty"`
}

// listConnections is list_connections. A connector sees the connections of its provider and custom ones, the
// backend all.
func (a *API) listConnections(ctx context.Context, r *request) (reply, error) {
	q, err := readConnectionQuery(r.http.URL.RawQuery)
	if err != nil {
		return reply{}, err
	}
	out := connectionsPage{Connections: []connectionBody{}}
	if !restrict(&q, r.caller) {
		return jsonReply(http.StatusOK, out)
	}
	limit := q.Limit
	q.Limit++ // the one beyond tells that there is another page
	views, err := a.cfg.Installations.Connections(ctx, q)
	if err != nil {
		return reply{}, err
	}
	if len(views) > limit {
		views = views[:limit]
		out.Cursor = string(views[limit-1].ConnectionID)
	}
	for i := range views {
		out.Connections = append(out.Connections, newConnectionBody(&views[i]))
	}
	return jsonReply(http.StatusOK, out)
}

// restrict limits a query to what the caller may see; false when that is nothing.
func restrict(q *installation.Query, caller principal.Identity) bool {
	if caller.Role != principal.Connector {
		return true
	}
	if len(q.Providers) == 0 {
		q.Providers = []string{caller.Provider, connection.ProviderCustom}
	}
	return q.Providers[0] == caller.Provider || q.Providers[0] == connection.ProviderCustom
}

// storable reports whether PostgreSQL can compare the text with one that it stores.
func storable(s string, maxLength int) bool {
	return s != "" && utf8.ValidString(s) && utf8.RuneCountInString(s) <= maxLength &&
		strings.IndexByte(s, 0) < 0
}

func readConnectionQuery(raw string) (q installation.Query, err error) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return q, fault.New(fault.InvalidRequest, "The query is malformed.")
	}
	for _, p := range []struct {
		name string
		max  int
	}{{"provider", maxProviderText}, {"state", maxProviderText}, {"external_store_id", maxExternalStoreID},
		{"cursor", maxExternalStoreID}, {"limit", maxProviderText}} {
		text, given := values[p.name]
		if len(text) > 1 {
			return q, fault.New(fault.InvalidRequest, "The query names "+p.name+" twice.")
		}
		if given && !storable(text[0], p.max) {
			return q, fault.New(fault.InvalidRequest,
				p.name+" has 1 to "+strconv.Itoa(p.max)+" characters of UTF-8 and no NUL.")
		}
	}
	if values.Has("provider") {
		q.Providers = []string{values.Get("provider")}
	}
	switch q.State = values.Get("state"); shop.State(q.State) {
	case "", shop.Active, shop.Suspended, shop.Uninstalled:
	default:
		return q, fault.New(fault.InvalidRequest, "state is active, suspended or uninstalled.")
	}
	q.ExternalStoreID = values.Get("external_store_id")
	q.After = ident.ConnectionID(values.Get("cursor"))
	if values.Has("cursor") && !ident.Valid(ident.Connection, string(q.After)) {
		return q, fault.New(fault.InvalidRequest, "cursor is not one that this list gave.")
	}
	q.Limit = defaultPage
	if values.Has("limit") {
		if q.Limit, err = strconv.Atoi(values.Get("limit")); err != nil || q.Limit < 1 ||
			q.Limit > installation.MaxPage {
			return q, fault.New(fault.InvalidRequest,
				"limit is a number from 1 to "+strconv.Itoa(installation.MaxPage)+".")
		}
	}
	return q, nil
}
