package shopify

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"storefront.internal/control/internal/outbound"
	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/provider/payload"
	"storefront.internal/control/internal/provider/remote"
	"storefront.internal/shared/catalog"
)

const (
	bulkPollDelay  = 2 * time.Second  // for an export that is not ready
	bulkLimitDelay = 15 * time.Second // when the shop runs as many exports as it may
	maxExports     = 3
)

type bulkOperation struct {
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

// bulkLimitReached reports whether the shop runs as many exports as it may.
func (list userErrors) bulkLimitReached() bool {
	return slices.ContainsFunc(list, func(e userError) bool {
		return e.Code == "OPERATION_IN_PROGRESS" || e.Code == "LIMIT_REACHED" ||
			strings.Contains(string(e.Message), "already in progress")
	})
}

// startExport starts an export. When the shop runs as many as it may, the caller comes back later.
func (a *Adapter) startExport(
	ctx context.Context, s provider.Shop, e catalog.Entity, at pageCursor,
) (provider.Page, error) {
	query := bulkProducts
	if e == catalog.Order {
		query = bulkOrders
	}
	var data struct {
		Run struct {
			Operation *bulkOperation `json:"bulkOperation"`
			Errors    userErrors     `json:"userErrors"`
		} `json:"bulkOperationRunQuery"`
	}
	if err := a.query(ctx, s, mutationRunBulk, map[string]any{"query": query}, costSmall, &data); err != nil {
		return provider.Page{}, err
	}
	if len(data.Run.Errors) > 0 {
		if data.Run.Errors.bulkLimitReached() {
			return provider.Page{Next: at.encode(), ReadyAfter: bulkLimitDelay}, nil
		}
		return provider.Page{},
			&provider.RequestRejected{Status: http.StatusOK, Reason: provider.ReasonBulkFailed}
	}
	if data.Run.Operation == nil {
		return provider.Page{}, &provider.Temporary{Reason: provider.ReasonInvalidJSON}
	}
	id, _ := parseGID(data.Run.Operation.ID)
	if at.bulk, _ = strconv.ParseInt(id, 10, 64); at.bulk == 0 {
		return provider.Page{}, &provider.Malformed{Reason: "bulk operation without an id"}
	}
	return provider.Page{Next: at.encode(), ReadyAfter: bulkPollDelay / 2, SnapshotStarted: true}, nil
}

// readExport reads a chunk of an export's file, or says when it may be ready.
func (a *Adapter) readExport(
	ctx context.Context, s provider.Shop, e catalog.Entity, at pageCursor,
) (provider.Page, error) {
	var data struct {
		Operation *bulkOperation `json:"bulkOperation"`
	}
	variables := map[string]any{"id": gid("BulkOperation", strconv.FormatInt(at.bulk, 10))}
	if err := a.query(ctx, s, queryBulk, variables, costSmall, &data); err != nil {
		return provider.Page{}, err
	}
	if data.Operation == nil {
		return restartExport(at)
	}
	switch data.Operation.Status {
	case "CREATED", "RUNNING", "CANCELING":
		return provider.Page{Next: at.encode(), ReadyAfter: bulkPollDelay}, nil
	case "COMPLETED":
		if data.Operation.URL == "" { // the export is empty
			return provider.Page{}, nil
		}
		return a.readChunk(ctx, s, e, at, string(data.Operation.URL))
	default: // FAILED, CANCELED, EXPIRED
		if data.Operation.Error == "ACCESS_DENIED" {
			return provider.Page{}, &provider.CredentialRefused{Status: http.StatusForbidden}
		}
		return restartExport(at)
	}
}

// restartExport begins another export, at most maxExports in all.
func restartExport(at pageCursor) (provider.Page, error) {
	if at.failed+1 >= maxExports {
		return provider.Page{}, &provider.RequestRejected{Reason: provider.ReasonBulkFailed}
	}
	return provider.Page{Next: pageCursor{failed: at.failed + 1}.encode(), ReadyAfter: bulkLimitDelay}, nil
}

// readChunk reads whole entities at the offset, in a larger chunk when one entity does not fit.
func (a *Adapter) readChunk(
	ctx context.Context, s provider.Shop, e catalog.Entity, at pageCursor, url string,
) (provider.Page, error) {
	for length := a.chunkSize; ; length *= 4 {
		chunk, err := a.download(ctx, url, outbound.ByteRange{Offset: at.offset, Length: length})
		if err != nil {
			return provider.Page{}, err
		}
		entities, orphans, used := splitEntities(chunk.Body, chunk.EOF)
		if used == 0 && !chunk.EOF {
			chunk.Release()
			if length >= outbound.DefaultMaxBody || int64(len(chunk.Body)) < length {
				return provider.Page{}, &provider.Temporary{Reason: provider.Reason(outbound.TooLarge)}
			}
			continue
		}
		page := provider.Page{Items: make([]provider.Fetched, 0, len(entities)), FromSnapshot: true}
		for _, lines := range entities {
			page.Items = append(page.Items, lines.read(e, s.Profile))
		}
		chunk.Release() // the parents of orphans need further calls
		for _, id := range orphans {
			f, err := a.Fetch(ctx, s, e, id)
			if malformed := new(provider.Malformed); err != nil && !errors.As(err, &malformed) {
				return provider.Page{}, err
			}
			page.Items = append(page.Items, f)
		}
		if !chunk.EOF || used < len(chunk.Body) {
			at.offset += int64(used)
			page.Next = at.encode()
		}
		return page, nil
	}
}

// download reads a part of an export's file. The provider chooses its host, which gets no credential.
func (a *Adapter) download(
	ctx context.Context, url string, part outbound.ByteRange,
) (*outbound.Response, error) {
	response, err := a.api.HTTP.Do(ctx, outbound.Request{Method: http.MethodGet, URL: url, Range: &part,
		MaxBody: outbound.MaxPart})
	if err != nil {
		return nil, remote.TransportError(err)
	}
	if response.Status >= 300 {
		response.Release()
	}
	switch {
	case response.Status == http.StatusRequestedRangeNotSatisfiable: // the offset is the end of the file
		return &outbound.Response{EOF: true}, nil
	case response.Status >= 300:
		return nil, &provider.Temporary{Reason: provider.ReasonServerError, Status: response.Status}
	default:
		return response, nil
	}
}

// entityLines are an entity's line and those of its children, each exactly as it came.
type entityLines [][]byte

// Bounds of what is made of a chunk. The rest of a chunk with more entities is read again.
const (
	maxChunkEntities = 2000
	maxOrphans       = 100    // each is a call
	maxEntityLines   = 10_000 // the catalog takes fewer variants, media and collections
)

// splitEntities returns the whole entities of a chunk, the parents of children that do not follow their
// parent, and the number of bytes used. The last entity of a chunk may go on in the next one, unless the file
// ends. An entity with more than maxEntityLines lines loses the rest of them, and is malformed.
func splitEntities(chunk []byte, end bool) (entities []entityLines, orphans []string, used int) {
	var (
		lastParent string // the id of the last parent
		seen       = make(map[string]bool)
	)
	for at := 0; at < len(chunk); {
		length := bytes.IndexByte(chunk[at:], '\n')
		next := at + length + 1
		if length < 0 {
			if !end {
				break
			}
			length, next = len(chunk)-at, len(chunk)
		}
		line := bytes.TrimRight(chunk[at:at+length], "\r")
		switch id, parent := lineIDs(line); {
		case len(line) == 0:
		case parent == "" && len(entities) == maxChunkEntities, len(orphans) == maxOrphans:
			return entities, orphans, at
		case parent == "":
			entities, lastParent, used = append(entities, entityLines{line}), id, at
		case parent == lastParent && lastParent != "":
			if last := &entities[len(entities)-1]; len(*last) <= maxEntityLines {
				*last = append(*last, line)
			}
		default:
			if id, _ := parseGID(parent); id != "" && !seen[id] {
				seen[id] = true
				orphans = append(orphans, id)
			}
		}
		at = next
	}
	switch {
	case end:
		return entities, orphans, len(chunk)
	case len(entities) == 0: // only children
		return nil, orphans, bytes.LastIndexByte(chunk, '\n') + 1
	}
	return entities[:max(len(entities)-1, 0)], orphans, used
}

func lineIDs(line []byte) (id, parent string) {
	var n struct {
		ID     payload.Text `json:"id"`
		Parent payload.Text `json:"__parentId"`
	}
	payload.Peek(line, &n)
	return string(n.ID), string(n.Parent)
}
