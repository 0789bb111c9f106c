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

// reply is an answer of the GraphQL endpoint.
type reply struct {
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

// report reads what an answer says about the shop's points.
func report(a *outbound.Answer) outbound.Report {
	var r reply
	if !remote.IsJSON(a) || payload.Decode(a.Body, &r) != nil || !(r.Extensions.Cost.Status.Maximum > 0) {
		return outbound.Report{}
	}
	c := r.Extensions.Cost
	out := outbound.Report{Known: true, Capacity: c.Status.Maximum, Available: max(c.Status.Available, 0), Refill: c.Status.Restore}
	if throttled := new(provider.Throttled); errors.As(failed(r), &throttled) {
		out.Pause = throttled.RetryAfter
	}
	return out
}

// query sends a query or a mutation and decodes the data. points is what it is thought to cost.
func (a *Adapter) query(ctx context.Context, s provider.Store, text string, variables map[string]any, points float64, into any) error {
	url, err := a.endpoint(s)
	if err != nil {
		return err
	}
	body, err := json.Marshal(map[string]any{"query": text, "variables": variables})
	if err != nil {
		return &provider.Rejected{Reason: provider.ReasonInternal}
	}
	header := http.Header{}
	header.Set("X-Shopify-Access-Token", s.Credential.Reveal())
	header.Set("Content-Type", "application/json")
	header.Set("Accept", "application/json")
	header.Set("User-Agent", "storefront")
	answer, err := a.api.Do(ctx, s, points, outbound.Request{Method: http.MethodPost, URL: url, Header: header, Body: body})
	if err != nil {
		return meaning(answer, err)
	}
	var r reply
	if err := remote.Decode(answer, &r); err != nil {
		return err
	}
	if err := failed(r); err != nil {
		return err
	}
	if len(r.Data) == 0 || r.Data[0] != '{' {
		return &provider.Temporary{Reason: provider.ReasonInvalidJSON, Status: answer.Status}
	}
	return remote.Shape(payload.Decode(r.Data, into))
}

// meaning is of statuses that this provider uses in its own way. A 404 is of the shop, never of an entity.
func meaning(a *outbound.Answer, err error) error {
	switch {
	case errors.Is(err, provider.ErrGone):
		return &provider.Temporary{Reason: provider.ReasonServerError, Status: http.StatusNotFound}
	case a != nil && a.Status == http.StatusLocked:
		return &provider.Paused{Status: a.Status}
	default:
		return err
	}
}

// failed returns what the errors of a reply mean. Data beside an error is not believed: its nulls may be the error's.
func failed(r reply) error {
	if len(r.Errors) == 0 || string(r.Errors) == "null" || string(r.Errors) == "[]" {
		return nil
	}
	var list []struct {
		Message    payload.Text `json:"message"`
		Extensions struct {
			Code payload.Text `json:"code"`
		} `json:"extensions"`
	}
	if payload.Decode(r.Errors, &list) != nil || len(list) == 0 {
		return &provider.Rejected{Status: http.StatusOK, Reason: provider.ReasonRejected}
	}
	code := string(list[0].Extensions.Code)
	if strings.EqualFold(string(list[0].Message), "Throttled") {
		code = "THROTTLED"
	}
	switch code {
	case "THROTTLED":
		return &provider.Throttled{RetryAfter: r.Extensions.Cost.wait()}
	case "ACCESS_DENIED", "UNAUTHORIZED", "FORBIDDEN":
		return &provider.Refused{Status: http.StatusForbidden}
	case "SHOP_INACTIVE":
		return &provider.Paused{Status: http.StatusPaymentRequired}
	case "INTERNAL_SERVER_ERROR", "TIMEOUT":
		return &provider.Temporary{Reason: provider.ReasonServerError, Status: http.StatusOK}
	default:
		return &provider.Rejected{Status: http.StatusOK, Reason: provider.ReasonRejected}
	}
}

// wait is how long it takes until the points for the query are back.
func (c cost) wait() time.Duration {
	seconds := (c.Requested - c.Status.Available) / c.Status.Restore
	if math.IsNaN(seconds) || seconds < 1 {
		return time.Second
	}
	return time.Duration(min(seconds, 60) * float64(time.Second))
}

// gid returns the global id of a number of a type.
func gid(kind, id string) string { return "gid://shopify/" + kind + "/" + id }

// number returns the number of a global id and its type: of gid://shopify/Product/1?x=y, 1 and Product. A number alone is
// its own.
func number(global string) (id, kind string) {
	rest, found := strings.CutPrefix(global, "gid://shopify/")
	if !found {
		if isNumber(global) {
			return global, ""
		}
		return "", ""
	}
	kind, id, _ = strings.Cut(rest, "/")
	id, _, _ = strings.Cut(id, "?")
	if !isNumber(id) {
		return "", kind
	}
	return id, kind
}

func isNumber(s string) bool {
	return s != "" && len(s) <= 20 && strings.Trim(s, "0123456789") == ""
}
