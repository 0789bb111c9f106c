package httpapi

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"storefront.internal/shared/deliveries"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
)

// viewQueue is view_queue.
func (a *API) viewQueue(ctx context.Context, _ *request) (reply, error) {
	v, err := a.cfg.Queue.View(ctx)
	if err != nil {
		return reply{}, err
	}
	return reply{status: http.StatusOK, contentType: "application/json", body: appendView(nil, v)}, nil
}

// appendView appends the answer of view_queue. It has an element for each connection with waiting deliveries,
// of which there may be ten thousand, for which encoding/json took 12 ms.
func appendView(dst []byte, v deliveries.View) []byte {
	const element = 192 // bytes, and some
	dst = slices.Grow(dst, (2+len(v.Connections))*element)
	dst = appendTime(append(dst, `{"read_at":`...), v.ReadAt)
	dst = append(dst, `,"worker":{"state":"`...)
	dst = append(append(dst, v.Worker.State...), '"')
	if !v.Worker.BlockedAt.IsZero() {
		dst = appendTime(append(dst, `,"blocked_at":`...), v.Worker.BlockedAt)
	}
	dst = appendStats(append(dst, `},"total":{`...), &v.Total)
	dst = append(dst, `,"connections":[`...)
	for i := range v.Connections {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"connection_id":"`...)
		dst = append(append(dst, v.Connections[i].ConnectionID...), `",`...)
		dst = appendStats(dst, &v.Connections[i])
	}
	return append(dst, "]}"...)
}

// appendStats appends the figures and the brace that closes them. Without a pending delivery there is no
// oldest one.
func appendStats(dst []byte, s *deliveries.Stats) []byte {
	dst = strconv.AppendInt(append(dst, `"pending":`...), s.Pending, 10)
	if !s.OldestPendingAt.IsZero() {
		dst = appendTime(append(dst, `,"oldest_pending_at":`...), s.OldestPendingAt)
		dst = strconv.AppendInt(append(dst, `,"oldest_pending_seconds":`...), s.OldestPendingSeconds, 10)
	}
	dst = strconv.AppendInt(append(dst, `,"dead_last_24h":`...), s.DeadLast24h, 10)
	dst = strconv.AppendInt(append(dst, `,"unconfirmed_creations":`...), s.UnconfirmedCreations, 10)
	return append(dst, '}')
}

// resumeDelivery is resume_delivery.
func (a *API) resumeDelivery(ctx context.Context, _ *request) (reply, error) {
	if err := a.cfg.Queue.Resume(ctx); err != nil {
		return reply{}, err
	}
	return reply{status: http.StatusAccepted}, nil
}

// deadBody is a page of dead letters.
type deadBody struct {
	Dead   []deadEntry `json:"dead"`
	Cursor string      `json:"cursor,omitempty"`
}

type deadEntry struct {
	SignalID     string    `json:"signal_id"` // of an envelope: its observation_id
	ConnectionID string    `json:"connection_id"`
	DiedAt       timestamp `json:"died_at"`
	Attempts     int       `json:"attempts"`
	Reason       string    `json:"reason"`
}

// listDead is list_dead.
func (a *API) listDead(ctx context.Context, r *request) (reply, error) {
	q, err := readDeadQuery(r.http.URL.RawQuery)
	if err != nil {
		return reply{}, err
	}
	page, err := a.cfg.Queue.Dead(ctx, q)
	if err != nil {
		return reply{}, err
	}
	out := deadBody{Dead: make([]deadEntry, 0, len(page.Dead)), Cursor: page.Cursor}
	for _, d := range page.Dead {
		out.Dead = append(out.Dead, deadEntry{d.ID, string(d.ConnectionID), timestamp(d.DiedAt),
			d.Attempts, d.Reason})
	}
	return jsonReply(http.StatusOK, out)
}

func readDeadQuery(raw string) (q deliveries.DeadQuery, err error) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return q, fault.New(fault.InvalidRequest, "The query is malformed.")
	}
	for _, name := range []string{"kind", "connection_id", "cursor", "limit"} {
		if len(values[name]) > 1 {
			return q, fault.New(fault.InvalidRequest, "The query names "+name+" twice.")
		}
	}
	if values.Has("kind") {
		var ok bool
		if q.Kind, ok = deliveries.ParseKind(values.Get("kind")); !ok {
			return q, fault.New(fault.InvalidRequest, "kind is interaction or envelope.")
		}
	}
	if values.Has("connection_id") && !ident.Valid(ident.Connection, values.Get("connection_id")) {
		return q, fault.New(fault.InvalidRequest, "connection_id is no connection's id.")
	}
	if values.Has("limit") {
		if q.Limit, err = strconv.Atoi(values.Get("limit")); err != nil || q.Limit < 1 ||
			q.Limit > deliveries.MaxDeadLimit {
			return q, fault.New(fault.InvalidRequest, "limit is a number from 1 to 500.")
		}
	}
	q.ConnectionID, q.Cursor = ident.ConnectionID(values.Get("connection_id")), values.Get("cursor")
	return q, nil
}

// maxReplay is the most ids that one replay may name.
const maxReplay = 500

// replayDead is replay_dead.
func (a *API) replayDead(ctx context.Context, r *request) (reply, error) {
	q, err := readReplay(r.http)
	if err != nil {
		return reply{}, err
	}
	n, err := a.cfg.Queue.Replay(ctx, q)
	if err != nil {
		return reply{}, err
	}
	return jsonReply(http.StatusAccepted, struct {
		Replayed int `json:"replayed"`
	}{n})
}

// readReplay rejects an empty signal_ids: it names no signal, and must not replay a whole connection.
func readReplay(r *http.Request) (q deliveries.ReplayQuery, err error) {
	body, err := readObject(r)
	if err != nil {
		return q, err
	}
	if name := body.stringMember("kind"); name != nil {
		var ok bool
		if q.Kind, ok = deliveries.ParseKind(*name); !ok {
			body.form.addError("/kind", "unknown_value", "Is interaction or envelope.")
			return q, body.form.err()
		}
	}
	if c := body.stringMember("connection_id"); c != nil {
		q.ConnectionID = ident.ConnectionID(*c)
		if !ident.Valid(ident.Connection, *c) {
			body.form.addError("/connection_id", "invalid_id", "Is no connection's id.")
		}
	}
	q.IDs = body.stringArray("signal_ids", maxReplay)
	if q.IDs != nil && len(q.IDs) == 0 {
		body.form.addError("/signal_ids", "invalid_length", "Names at least one signal or observation.")
	}
	for i, id := range q.IDs {
		if !q.Kind.ValidID(id) {
			body.form.addError("/signal_ids/"+strconv.Itoa(i), "invalid_id", "Is no id of the kind.")
		}
	}
	if q.ConnectionID == "" && len(q.IDs) == 0 && len(body.form.errs) == 0 {
		return q, fault.Invalid("", "missing", "Names connection_id, signal_ids or both.")
	}
	return q, body.form.err()
}
