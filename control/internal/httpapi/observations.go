package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"storefront.internal/control/internal/observation"
	"storefront.internal/shared/fault"
)

// deliverObservations is operation 4. Its every answer is application/json, failures too (contract, section 1 "Problems").
func (a *API) deliverObservations(ctx context.Context, r *request) (reply, error) {
	body, release, err := a.bodies.read(r.http, maxObservationsBody)
	if err != nil {
		return reply{}, err
	}
	defer release()
	results, err := a.cfg.Observations.Deliver(ctx, observation.Source{
		ConnectionID: r.holder.ID, StoreID: r.holder.StoreID, Provider: observation.ProviderCustom,
	}, body)
	if err != nil {
		return reply{}, err
	}
	return reply{status: http.StatusOK, contentType: "application/json", body: appendResults(nil, results)}, nil
}

// appendResults writes the results by hand: there are up to 500, and reasons are the only texts that may need escapes.
func appendResults(dst []byte, results []observation.Result) []byte {
	dst = append(dst, `{"results":[`...)
	for i := range results {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"index":`...)
		dst = strconv.AppendInt(dst, int64(results[i].Index), 10)
		dst = append(appendResult(append(dst, ','), &results[i]), '}')
	}
	return append(dst, `]}`...)
}

// appendResult writes the members behind the index.
func appendResult(dst []byte, r *observation.Result) []byte {
	dst = append(append(append(dst, `"status":"`...), r.Status...), '"')
	dst = appendMember(dst, "observation_id", string(r.ObservationID))
	dst = appendMember(dst, "entity_id", r.EntityID)
	return appendMember(dst, "reason", r.Reason)
}

// appendMember appends a member of text unless it is empty.
func appendMember(dst []byte, name, value string) []byte {
	if value == "" {
		return dst
	}
	quoted, _ := json.Marshal(value) // a string cannot fail
	dst = append(append(append(dst, `,"`...), name...), `":`...)
	return append(dst, quoted...)
}

// plainFailure makes a failure of operation 4's path: {code, detail} and nothing else.
func (a *API) plainFailure(h http.Header, ev *event, err error) reply {
	f := fault.From(err)
	a.note(h, ev, f, err)
	entry, ok := a.entries[f.Code]
	if !ok {
		entry, f = a.entries[fault.InternalError], &fault.Error{}
	}
	body := struct {
		Code   fault.Code `json:"code"`
		Detail string     `json:"detail"`
	}{entry.Code, f.Detail}
	if entry.Code == fault.InternalError || body.Detail == "" {
		body.Detail = entry.Title + "."
	}
	if entry.Code == fault.ServiceUnavailable {
		body.Code = "unavailable"
	}
	if len(f.Fields) > 0 && f.Fields[0].Pointer != "" {
		body.Detail += " (" + f.Fields[0].Pointer + ")"
	}
	ev.code = string(body.Code)
	raw, _ := json.Marshal(body) // two strings cannot fail
	return reply{status: entry.Status, contentType: "application/json", body: raw}
}

// listQuarantine is the reading half of E8.
func (a *API) listQuarantine(ctx context.Context, r *request) (reply, error) {
	cursor, err := cursorOf(r.http)
	if err != nil {
		return reply{}, err
	}
	page, err := a.cfg.Observations.Quarantine(ctx, r.params.connection, cursor)
	if err != nil {
		return reply{}, err
	}
	out := quarantineBody{Quarantined: make([]heldBody, 0, len(page.Held)), Cursor: page.Cursor}
	for i := range page.Held {
		h := &page.Held[i]
		out.Quarantined = append(out.Quarantined, heldBody{string(h.ObservationID), string(h.Entity), h.ExternalID, h.Revision, h.Reason, instant(h.At)})
	}
	return jsonReply(http.StatusOK, out)
}

type quarantineBody struct {
	Quarantined []heldBody `json:"quarantined"`
	Cursor      string     `json:"cursor,omitempty"`
}

type heldBody struct {
	ObservationID string  `json:"observation_id"`
	Entity        string  `json:"entity"`
	ExternalID    string  `json:"external_id"`
	Revision      int64   `json:"revision"`
	Reason        string  `json:"reason"`
	At            instant `json:"at"`
}

// replayQuarantined is the writing half of E8. It says what became of the observation.
func (a *API) replayQuarantined(ctx context.Context, r *request) (reply, error) {
	result, err := a.cfg.Observations.Replay(ctx, r.params.connection, r.params.observation)
	if err != nil {
		return reply{}, err
	}
	body := append(appendResult([]byte{'{'}, &result), '}')
	return reply{status: http.StatusAccepted, contentType: "application/json", body: body}, nil
}
