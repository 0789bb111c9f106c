package httpapi

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"storefront.internal/control/internal/queueview"
	"storefront.internal/shared/deliveries"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
)

// viewBody is the queue view (spec.md "Engine queue view").
type viewBody struct {
	ReadAt instant `json:"read_at"`
	Worker struct {
		State     deliveries.WorkerState `json:"state"`
		BlockedAt *instant               `json:"blocked_at,omitempty"`
	} `json:"worker"`
	Total       sliceBody   `json:"total"`
	Connections []sliceBody `json:"connections"`
}

// sliceBody leaves out connection_id in the total, and the oldest where nothing waits.
type sliceBody struct {
	ConnectionID  string   `json:"connection_id,omitempty"`
	Pending       int64    `json:"pending"`
	OldestAt      *instant `json:"oldest_pending_at,omitempty"`
	OldestSeconds *int64   `json:"oldest_pending_seconds,omitempty"`
	Dead          int64    `json:"dead_last_24h"`
	Unconfirmed   int64    `json:"unconfirmed_creations"`
}

func newSliceBody(s deliveries.Slice) sliceBody {
	out := sliceBody{ConnectionID: string(s.ConnectionID), Pending: s.Pending, Dead: s.DeadLast24h, Unconfirmed: s.UnconfirmedCreations}
	if out.OldestAt = optional(s.OldestPendingAt); out.OldestAt != nil {
		out.OldestSeconds = &s.OldestPendingSeconds
	}
	return out
}

func optional(t time.Time) *instant {
	if t.IsZero() {
		return nil
	}
	i := instant(t)
	return &i
}

// viewQueue is operation 9.
func (a *API) viewQueue(ctx context.Context, _ *request) (reply, error) {
	v, err := a.cfg.Queue.View(ctx)
	if err != nil {
		return reply{}, err
	}
	out := viewBody{ReadAt: instant(v.ReadAt), Total: newSliceBody(v.Total), Connections: make([]sliceBody, 0, len(v.Connections))}
	out.Worker.State, out.Worker.BlockedAt = v.Worker.State, optional(v.Worker.BlockedAt)
	for _, s := range v.Connections {
		out.Connections = append(out.Connections, newSliceBody(s))
	}
	return jsonReply(http.StatusOK, out)
}

// resumeDelivery is E5.
func (a *API) resumeDelivery(ctx context.Context, _ *request) (reply, error) {
	if err := a.cfg.Queue.Resume(ctx); err != nil {
		return reply{}, err
	}
	return reply{status: http.StatusAccepted}, nil
}

// deadBody is a page of dead interactions.
type deadBody struct {
	Dead   []deadEntry `json:"dead"`
	Cursor string      `json:"cursor,omitempty"`
}

type deadEntry struct {
	SignalID     string  `json:"signal_id"`
	ConnectionID string  `json:"connection_id"`
	DiedAt       instant `json:"died_at"`
	Attempts     int     `json:"attempts"`
	Reason       string  `json:"reason"`
}

// listDead is the reading half of E6.
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
		out.Dead = append(out.Dead, deadEntry{string(d.SignalID), string(d.ConnectionID), instant(d.DiedAt), d.Attempts, d.Reason})
	}
	return jsonReply(http.StatusOK, out)
}

func readDeadQuery(raw string) (q deliveries.DeadQuery, err error) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return q, fault.New(fault.InvalidRequest, "The query is malformed.")
	}
	for _, name := range []string{"connection_id", "cursor", "limit"} {
		if len(values[name]) > 1 {
			return q, fault.New(fault.InvalidRequest, "The query names "+name+" twice.")
		}
	}
	if values.Has("connection_id") && !ident.Valid(ident.Connection, values.Get("connection_id")) {
		return q, fault.New(fault.InvalidRequest, "connection_id is no connection's id.")
	}
	if values.Has("limit") {
		if q.Limit, err = strconv.Atoi(values.Get("limit")); err != nil || q.Limit < 1 || q.Limit > deliveries.MaxDeadLimit {
			return q, fault.New(fault.InvalidRequest, "limit is a number from 1 to 500.")
		}
	}
	q.ConnectionID, q.Cursor = ident.ConnectionID(values.Get("connection_id")), values.Get("cursor")
	return q, nil
}

// replayDead is the writing half of E6.
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

// readReplay refuses an empty signal_ids: whoever sends one means no signal, and must not replay a whole connection.
func readReplay(r *http.Request) (q deliveries.ReplayQuery, err error) {
	raw, err := readBody(r)
	if err != nil {
		return q, err
	}
	body, err := parseObject(raw)
	if err != nil {
		return q, err
	}
	if c := body.text("connection_id"); c != nil {
		q.ConnectionID = ident.ConnectionID(*c)
		if !ident.Valid(ident.Connection, *c) {
			body.form.fault("/connection_id", "invalid_id", "Is no connection's id.")
		}
	}
	ids := body.texts("signal_ids", queueview.MaxReplay)
	if ids != nil && len(ids) == 0 {
		body.form.fault("/signal_ids", "invalid_length", "Names at least one signal.")
	}
	for i, id := range ids {
		q.SignalIDs = append(q.SignalIDs, ident.SignalID(id))
		if !ident.Valid(ident.Signal, id) {
			body.form.fault("/signal_ids/"+strconv.Itoa(i), "invalid_id", "Is no signal's id.")
		}
	}
	return q, body.form.err()
}
