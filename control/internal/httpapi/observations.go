package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"storefront.internal/control/internal/observation"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
)

// deliverObservations is deliver_observations. All of its answers are application/json, errors too.
func (a *API) deliverObservations(ctx context.Context, r *request) (reply, error) {
	buffer, err := a.uploads.read(r, maxObservationsBody)
	if err != nil {
		return reply{}, err
	}
	defer buffer.release()
	results, err := a.cfg.Observations.Deliver(ctx, observation.Source{
		ConnectionID: r.custom.ID, StoreID: r.custom.StoreID, Provider: observation.ProviderCustom,
	}, buffer.body)
	if err != nil {
		return reply{}, err
	}
	out := struct {
		Results []indexedResult `json:"results"`
	}{make([]indexedResult, 0, len(results))}
	for i := range results {
		out.Results = append(out.Results, indexedResult{results[i].Index, newResultBody(&results[i])})
	}
	return jsonReply(http.StatusOK, out)
}

type indexedResult struct {
	Index int `json:"index"`
	resultBody
}

// resultBody is what became of one observation.
type resultBody struct {
	Status        observation.Status  `json:"status"`
	ObservationID ident.ObservationID `json:"observation_id,omitempty"`
	EntityID      string              `json:"entity_id,omitempty"`
	Reason        string              `json:"reason,omitempty"`
}

func newResultBody(r *observation.Result) resultBody {
	return resultBody{r.Status, r.ObservationID, r.EntityID, r.Reason}
}

// plainError builds an error answer of the path of deliver_observations: {code, detail} and nothing else.
func (a *API) plainError(h http.Header, ev *event, err error) reply {
	f := fault.From(err)
	a.recordFailure(h, ev, f, err)
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

// listQuarantine is list_quarantine.
func (a *API) listQuarantine(ctx context.Context, r *request) (reply, error) {
	cursor, err := readCursor(r.http)
	if err != nil {
		return reply{}, err
	}
	page, err := a.cfg.Observations.Quarantine(ctx, r.params.connection, cursor)
	if err != nil {
		return reply{}, err
	}
	out := quarantineBody{Quarantined: make([]quarantinedBody, 0, len(page.Observations)),
		Cursor: page.Cursor}
	for i := range page.Observations {
		h := &page.Observations[i]
		out.Quarantined = append(out.Quarantined, quarantinedBody{string(h.ObservationID), string(h.Entity),
			h.ExternalID, h.Revision, h.Reason, timestamp(h.At)})
	}
	return jsonReply(http.StatusOK, out)
}

type quarantineBody struct {
	Quarantined []quarantinedBody `json:"quarantined"`
	Cursor      string            `json:"cursor,omitempty"`
}

type quarantinedBody struct {
	ObservationID string    `json:"observation_id"`
	Entity        string    `json:"entity"`
	ExternalID    string    `json:"external_id"`
	Revision      int64     `json:"revision"`
	Reason        string    `json:"reason"`
	At            timestamp `json:"at"`
}

// replayQuarantined is replay_quarantined. It answers what became of the observation.
func (a *API) replayQuarantined(ctx context.Context, r *request) (reply, error) {
	result, err := a.cfg.Observations.Replay(ctx, r.params.connection, r.params.observation)
	if err != nil {
		return reply{}, err
	}
	return jsonReply(http.StatusAccepted, newResultBody(&result))
}
