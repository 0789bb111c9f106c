package shopify

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strings"
	"time"

	"storefront.internal/control/internal/outbound"
	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/provider/payload"
	"storefront.internal/control/internal/provider/remote"
)

// graphQLResponse is a response of the GraphQL endpoint.
type graphQLResponse struct {
	Data       json.RawMessage `json:"data"`
	Errors     json.RawMessage `json:"errors"`
	Extensions struct {
		Cost cost `json:"cost"`
	} `json:"extensions"`
}

type cost struct {
	Requested float64 `json:"requestedQueryCost"`
	Status    struct {
		Maximum   float64 `json:"maximumAvailable"`
		Available float64 `json:"currentlyAvailable"`
		Restore   float64 `json:"restoreRate"`
	} `json:"throttleStatus"`
}

// costFeedback reads what a response says about the shop's points.
func costFeedback(a *outbound.Response) outbound.Feedback {
	var r graphQLResponse
	if !remote.IsJSON(a) || payload.Decode(a.Body, &r) != nil || !(r.Extensions.Cost.Status.Maximum > 0) {
		return outbound.Feedback{}
	}
	c := r.Extensions.Cost
	out := outbound.Feedback{Known: true, Capacity: c.Status.Maximum, Available: max(c.Status.Available, 0),
		Refill: c.Status.Restore}
	if throttled := new(provider.Throttled); errors.As(responseError(r), &throttled) {
		out.Pause = throttled.RetryAfter
	}
	return out
}

// query sends a query or a mutation and decodes the data. points is its estimated cost.
func (a *Adapter) query(
	ctx context.Context, s provider.Shop, text string, variables map[string]any, points float64, into any,
) error {
	maxBody := int64(outbound.MaxPage)
	if points < costFetch {
		maxBody = outbound.MaxSmall
	}
	url, err := a.endpoint(s)
	if err != nil {
		return err
	}
	body, err := json.Marshal(map[string]any{"query": text, "variables": variables})
	if err != nil {
		return &provider.RequestRejected{Reason: provider.ReasonInternal}
	}
	header := http.Header{}
	header.Set("X-Shopify-Access-Token", s.Credential.Reveal())
	header.Set("Content-Type", "application/json")
	header.Set("Accept", "application/json")
	header.Set("User-Agent", "storefront")
	response, err := a.api.Do(ctx, s, points,
		outbound.Request{Method: http.MethodPost, URL: url, Header: header, Body: body, MaxBody: maxBody},
		func(response *outbound.Response) error { return readData(response, into) })
	return statusError(response, err)
}

// readData decodes the data of a response.
func readData(response *outbound.Response, into any) error {
	var r graphQLResponse
	if err := remote.Decode(response, &r); err != nil {
		return err
	}
	if err := responseError(r); err != nil {
		return err
	}
	if len(r.Data) == 0 || r.Data[0] != '{' {
		return &provider.Temporary{Reason: provider.ReasonInvalidJSON, Status: response.Status}
	}
	return remote.DecodeError(payload.Decode(r.Data, into))
}

// statusError adds statuses with a meaning of this provider. A 404 is about the shop, never about an entity.
func statusError(a *outbound.Response, err error) error {
	switch {
	case errors.Is(err, provider.ErrNotFound):
		return &provider.Temporary{Reason: provider.ReasonServerError, Status: http.StatusNotFound}
	case a != nil && a.Status == http.StatusLocked:
		return &provider.ShopSuspended{Status: a.Status}
	default:
		return err
	}
}

// responseError returns the error of a response. Data beside errors is ignored: its nulls may come from the
// error.
func responseError(r graphQLResponse) error {
	if len(r.Errors) == 0 || string(r.Errors) == "null" || string(r.Errors) == "[]" {
		return nil
	}
	var list payload.List[struct {
		Message    payload.Text `json:"message"`
		Extensions struct {
			Code payload.Text `json:"code"`
		} `json:"extensions"`
	}]
	if payload.Decode(r.Errors, &list) != nil || len(list) == 0 {
		return &provider.RequestRejected{Status: http.StatusOK, Reason: provider.ReasonRequestRejected}
	}
	code := string(list[0].Extensions.Code)
	if strings.EqualFold(string(list[0].Message), "Throttled") {
		code = "THROTTLED"
	}
	switch code {
	case "THROTTLED":
		return &provider.Throttled{RetryAfter: r.Extensions.Cost.wait()}
	case "ACCESS_DENIED", "UNAUTHORIZED", "FORBIDDEN":
		return &provider.CredentialRefused{Status: http.StatusForbidden}
	case "SHOP_INACTIVE":
		return &provider.ShopSuspended{Status: http.StatusPaymentRequired}
	case "INTERNAL_SERVER_ERROR", "TIMEOUT":
		return &provider.Temporary{Reason: provider.ReasonServerError, Status: http.StatusOK}
	default:
		return &provider.RequestRejected{Status: http.StatusOK, Reason: provider.ReasonRequestRejected}
	}
}

// wait is how long it takes until the points for the query are available again.
func (c cost) wait() time.Duration {
	seconds := (c.Requested - c.Status.Available) / c.Status.Restore
	if math.IsNaN(seconds) || seconds < 1 {
		return time.Second
	}
	return time.Duration(min(seconds, 60) * float64(time.Second))
}

// gid returns the global id of an entity.
func gid(kind, id string) string { return "gid://shopify/" + kind + "/" + id }

// parseGID returns the number and the type of a global id: of gid://shopify/Product/1?x=y, 1 and Product. A
// plain number is returned without a type.
func parseGID(global string) (id, kind string) {
	rest, found := strings.CutPrefix(global, "gid://shopify/")
	if !found {
		if payload.IsNumber(global) {
			return global, ""
		}
		return "", ""
	}
	kind, id, _ = strings.Cut(rest, "/")
	id, _, _ = strings.Cut(id, "?")
	if !payload.IsNumber(id) {
		return "", kind
	}
	return id, kind
}
