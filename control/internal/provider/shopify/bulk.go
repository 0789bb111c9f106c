package shopify

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"storefront.internal/control/internal/outbound"
	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/provider/payload"
	"storefront.internal/control/internal/provider/remote"
	"storefront.internal/shared/catalog"
)

const (
	poll         = 2 * time.Second  // how soon to ask again for an export that is being written
	crowded      = 15 * time.Second // how soon to ask again when other exports of the shop are
	mostAttempts = 3
)

type operation struct {
	ID     string       `json:"id"`
	Status payload.Text `json:"status"`
	Error  payload.Text `json:"errorCode"`
	URL    payload.Text `json:"url"`
}

type userError struct {
	Field   []string     `json:"field"`
	Message payload.Text `json:"message"`
	Code    payload.Text `json:"code"`
}

type userErrors []userError

// crowded reports whether the shop writes as many exports as it may.
func (list userErrors) crowded() bool {
	return slices.ContainsFunc(list, func(e userError) bool {
		return e.Code == "OPERATION_IN_PROGRESS" || e.Code == "LIMIT_REACHED" || strings.Contains(string(e.Message), "already in progress")
	})
}

// start asks for an export. A shop that writes as many as it may is asked again later.
func (a *Adapter) start(ctx context.Context, s provider.Store, e catalog.Entity, at place) (provider.Page, error) {
	query := bulkProducts
	if e == catalog.Order {
		query = bulkOrders
	}
	var data struct {
		Run struct {
			Operation *operation `json:"bulkOperation"`
			Errors    userErrors `json:"userErrors"`
		} `json:"bulkOperationRunQuery"`
	}
	if err := a.query(ctx, s, runBulk, map[string]any{"query": query}, costSmall, &data); err != nil {
		return provider.Page{}, err
	}
	if len(data.Run.Errors) > 0 {
		if data.Run.Errors.crowded() {
			return provider.Page{Next: at.cursor(), After: crowded}, nil
		}
		return provider.Page{}, &provider.Rejected{Status: http.StatusOK, Reason: provider.ReasonBulkFailed}
	}
	if data.Run.Operation == nil {
		return provider.Page{}, &provider.Temporary{Reason: provider.ReasonInvalidJSON}
	}
	if at.bulk, _ = number(data.Run.Operation.ID); at.bulk == "" {
		return provider.Page{}, &provider.Malformed{Reason: "bulk operation without an id"}
	}
	return provider.Page{Next: at.cursor(), After: poll / 2, Begins: true}, nil
}

// exported reads a piece of an export's file, or says when it may be there.
func (a *Adapter) exported(ctx context.Context, s provider.Store, e catalog.Entity, at place) (provider.Page, error) {
	var data struct {
		Operation *operation `json:"bulkOperation"`
	}
	if err := a.query(ctx, s, queryBulk, map[string]any{"id": gid("BulkOperation", at.bulk)}, costSmall, &data); err != nil {
		return provider.Page{}, err
	}
	if data.Operation == nil {
		return again(at)
	}
	switch data.Operation.Status {
	case "CREATED", "RUNNING", "CANCELING":
		return provider.Page{Next: at.cursor(), After: poll}, nil
	case "COMPLETED":
		if data.Operation.URL == "" { // there was nothing to write
			return provider.Page{}, nil
		}
		return a.piecewise(ctx, s, e, at, string(data.Operation.URL))
	default: // FAILED, CANCELED, EXPIRED
		if data.Operation.Error == "ACCESS_DENIED" {
			return provider.Page{}, &provider.Refused{Status: http.StatusForbidden}
		}
		return again(at)
	}
}

// again starts over with another export, a few times.
func again(at place) (provider.Page, error) {
	if at.attempts+1 >= mostAttempts {
		return provider.Page{}, &provider.Rejected{Reason: provider.ReasonBulkFailed}
	}
	return provider.Page{Next: place{attempts: at.attempts + 1}.cursor(), After: crowded}, nil
}

// piecewise reads whole entities at the offset: a larger piece where one entity alone is larger.
func (a *Adapter) piecewise(ctx context.Context, s provider.Store, e catalog.Entity, at place, url string) (provider.Page, error) {
	for length := a.piece; ; length *= 4 {
		piece, err := a.file(ctx, url, outbound.Part{Offset: at.offset, Length: length})
		if err != nil {
			return provider.Page{}, err
		}
		groups, orphans, used := split(piece.Body, piece.End)
		if used == 0 && !piece.End {
			if length >= outbound.DefaultMaxBody || int64(len(piece.Body)) < length {
				return provider.Page{}, &provider.Temporary{Reason: provider.Reason(outbound.TooLarge)}
			}
			continue
		}
		page := provider.Page{Items: make([]provider.Fetched, 0, len(groups)), Exported: true}
		for _, g := range groups {
			page.Items = append(page.Items, g.read(e, s.Profile))
		}
		for _, id := range orphans {
			f, err := a.Fetch(ctx, s, e, id)
			if malformed := new(provider.Malformed); err != nil && !errors.As(err, &malformed) {
				return provider.Page{}, err
			}
			page.Items = append(page.Items, f)
		}
		if !piece.End {
			at.offset += int64(used)
			page.Next = at.cursor()
		}
		return page, nil
	}
}

// file reads a part of an export. The file lies at a host of the provider's choice, which gets no credential.
func (a *Adapter) file(ctx context.Context, url string, part outbound.Part) (*outbound.Answer, error) {
	answer, err := a.api.HTTP.Do(ctx, outbound.Request{Method: http.MethodGet, URL: url, Part: &part})
	if err != nil {
		return nil, remote.Failure(err)
	}
	switch {
	case answer.Status == http.StatusRequestedRangeNotSatisfiable: // the offset is the end
		return &outbound.Answer{End: true}, nil
	case answer.Status >= 300:
		return nil, &provider.Temporary{Reason: provider.ReasonServerError, Status: answer.Status}
	default:
		return answer, nil
	}
}

// group is an entity's line and those of its children, each exactly as it came.
type group [][]byte

// split returns the whole entities of a piece, the parents of children that do not follow theirs, and how many bytes were
// used: the last entity of a piece that does not end the file may go on in the next one.
func split(piece []byte, end bool) (groups []group, orphans []string, used int) {
	var (
		open string // the id of the last group's parent
		lost = make(map[string]bool)
	)
	for at := 0; at < len(piece); {
		length := bytes.IndexByte(piece[at:], '\n')
		next := at + length + 1
		if length < 0 {
			if !end {
				break
			}
			length, next = len(piece)-at, len(piece)
		}
		line := bytes.TrimRight(piece[at:at+length], "\r")
		switch id, parent := identify(line); {
		case len(line) == 0:
		case parent == "":
			groups, open, used = append(groups, group{line}), id, at
		case parent == open && open != "":
			groups[len(groups)-1] = append(groups[len(groups)-1], line)
		default:
			if id, _ := number(parent); id != "" && !lost[id] {
				lost[id] = true
				orphans = append(orphans, id)
			}
		}
		at = next
	}
	switch {
	case end:
		return groups, orphans, len(piece)
	case len(groups) == 0: // children alone
		return nil, orphans, bytes.LastIndexByte(piece, '\n') + 1
	}
	return groups[:max(len(groups)-1, 0)], orphans, used
}

func identify(line []byte) (id, parent string) {
	var n struct {
		ID     payload.Text `json:"id"`
		Parent payload.Text `json:"__parentId"`
	}
	_ = payload.Decode(line, &n)
	return string(n.ID), string(n.Parent)
}
