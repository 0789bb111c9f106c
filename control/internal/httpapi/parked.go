package httpapi

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"storefront.internal/control/internal/parked"
	"storefront.internal/shared/fault"
)

// Parked lists, replays and drops what the relay could not store.
type Parked interface {
	List(ctx context.Context, q parked.Query) (parked.Page, error)
	Show(ctx context.Context, id int64) (parked.Record, error)
	Replay(ctx context.Context, id int64) error
	Drop(ctx context.Context, id int64, reason string) error
}

type parkedPage struct {
	Parked []parkedBody `json:"parked"`
	Cursor string       `json:"cursor,omitempty"`
}

type parkedBody struct {
	ParkedID          string     `json:"parked_id"`
	Topic             string     `json:"topic"`
	Partition         int        `json:"partition"`
	Offset            int64      `json:"offset"`
	At                timestamp  `json:"at"`
	Reason            string     `json:"reason"`
	SQLState          string     `json:"sqlstate,omitempty"`
	ConnectionID      string     `json:"connection_id,omitempty"`
	SignalID          string     `json:"signal_id,omitempty"`
	ReplayRequestedAt *timestamp `json:"replay_requested_at,omitempty"`
	ReplayFailedAt    *timestamp `json:"replay_failed_at,omitempty"`
	ReplayedAt        *timestamp `json:"replayed_at,omitempty"`
	Bytes             []byte     `json:"bytes,omitempty"` // base64
}

func newParkedBody(r *parked.Record) parkedBody {
	return parkedBody{
		ParkedID: strconv.FormatInt(r.ID, 10), Topic: r.Topic, Partition: r.Partition, Offset: r.Offset,
		At: timestamp(r.ParkedAt), Reason: r.Reason, SQLState: r.SQLState, ConnectionID: r.ConnectionID,
		SignalID: r.SignalID, ReplayRequestedAt: optional(r.ReplayRequestedAt),
		ReplayFailedAt: optional(r.ReplayFailedAt), ReplayedAt: optional(r.ReplayedAt), Bytes: r.Bytes,
	}
}

// listParked is list_parked.
func (a *API) listParked(ctx context.Context, r *request) (reply, error) {
	q, err := readParkedQuery(r.http.URL.RawQuery)
	if err != nil {
		return reply{}, err
	}
	page, err := a.cfg.Parked.List(ctx, q)
	if err != nil {
		return reply{}, err
	}
	out := parkedPage{Parked: make([]parkedBody, 0, len(page.Records))}
	for i := range page.Records {
		out.Parked = append(out.Parked, newParkedBody(&page.Records[i]))
	}
	if page.Next != 0 {
		out.Cursor = strconv.FormatInt(page.Next, 10)
	}
	return jsonReply(http.StatusOK, out)
}

func readParkedQuery(raw string) (q parked.Query, err error) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return q, fault.New(fault.InvalidRequest, "The query is malformed.")
	}
	for _, name := range []string{"topic", "cursor", "limit"} {
		if len(values[name]) > 1 {
			return q, fault.New(fault.InvalidRequest, "The query names "+name+" twice.")
		}
	}
	if q.Topic = values.Get("topic"); values.Has("topic") && !validTopic(q.Topic) {
		return q, fault.New(fault.InvalidRequest, "topic is no name of a Kafka topic.")
	}
	var ok bool
	if q.After, ok = parseParkedID(values.Get("cursor")); !ok && values.Has("cursor") {
		return q, fault.New(fault.InvalidRequest, "cursor is not one that this list gave.")
	}
	if values.Has("limit") {
		if q.Limit, err = strconv.Atoi(values.Get("limit")); err != nil || q.Limit < 1 ||
			q.Limit > parked.MaxLimit {
			return q, fault.New(fault.InvalidRequest, "limit is a number from 1 to 500.")
		}
	}
	return q, nil
}

// validTopic reports whether a text has the form of a Kafka topic's name.
func validTopic(name string) bool {
	return name != "" && len(name) <= 249 && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '.' &&
			r != '_' && r != '-'
	})
}

// parseParkedID accepts the one form in which an id is written.
func parseParkedID(text string) (id int64, ok bool) {
	id, err := strconv.ParseInt(text, 10, 64)
	return id, err == nil && id > 0 && strconv.FormatInt(id, 10) == text
}

// showParked is show_parked.
func (a *API) showParked(ctx context.Context, r *request) (reply, error) {
	record, err := a.cfg.Parked.Show(ctx, r.params.parked)
	if err != nil {
		return reply{}, err
	}
	return jsonReply(http.StatusOK, newParkedBody(&record))
}

// replayParked is replay_parked.
func (a *API) replayParked(ctx context.Context, r *request) (reply, error) {
	if err := a.cfg.Parked.Replay(ctx, r.params.parked); err != nil {
		return reply{}, err
	}
	return reply{status: http.StatusAccepted}, nil
}

// maxDropReason is the most characters of the reason for which a record is dropped.
const maxDropReason = 500

// dropParked is drop_parked.
func (a *API) dropParked(ctx context.Context, r *request) (reply, error) {
	body, err := readObject(r.http)
	if err != nil {
		return reply{}, err
	}
	reason := body.requiredString("reason", maxDropReason)
	if err := body.form.err(); err != nil {
		return reply{}, err
	}
	if err := a.cfg.Parked.Drop(ctx, r.params.parked, reason); err != nil {
		return reply{}, err
	}
	return reply{status: http.StatusNoContent}, nil
}
