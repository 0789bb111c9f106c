package woocommerce

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"storefront.internal/control/internal/outbound"
	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/provider/payload"
	"storefront.internal/control/internal/provider/remote"
	"storefront.internal/shared/backoff"
	"storefront.internal/shared/catalog"
)

// maxVariationPages bounds the pages of one product's variations.
const maxVariationPages = 50

// Fetch implements provider.Adapter.
func (a *Adapter) Fetch(
	ctx context.Context, s provider.Shop, e catalog.Entity, externalID string,
) (provider.Fetched, error) {
	f := provider.Fetched{Entity: e, ExternalID: externalID, RawFormat: provider.JSON}
	if !payload.IsNumber(externalID) {
		f.Gone = true // shops have no such ids
		return f, nil
	}
	response, err := a.call(ctx, s,
		remote.Request{Method: http.MethodGet, Path: listPath(e) + "/" + externalID,
			MaxBody: entityMaxBody(e), Read: remote.Entity})
	if errors.Is(err, provider.ErrNotFound) {
		f.Gone, f.Raw = true, response.Body
		return f, nil
	}
	if err != nil {
		return f, err
	}
	f, err = a.readEntity(ctx, s, e, response.Body)
	if err != nil {
		return provider.Fetched{Entity: e, ExternalID: externalID}, err
	}
	return f.Requested(externalID)
}

func entityMaxBody(e catalog.Entity) int64 {
	if e == catalog.Category {
		return outbound.MaxSmall
	}
	return outbound.MaxPage
}

// readEntities makes the entities of a page, in their order. It stops early, behind the first one at least,
// when they have more than MaxRaw bytes with their variations.
func (a *Adapter) readEntities(
	ctx context.Context, s provider.Shop, e catalog.Entity, entities []json.RawMessage,
) ([]provider.Fetched, error) {
	items := make([]provider.Fetched, len(entities))
	var size atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(maxInFlight)
	started := 0
	for i, raw := range entities {
		if size.Load() > provider.MaxRaw {
			break
		}
		started++
		g.Go(func() (err error) {
			items[i], err = a.readEntity(ctx, s, e, raw)
			size.Add(int64(len(items[i].Raw)))
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return items[:started], nil
}

// readEntity makes one entity; for a product with variations it reads these too. The error is that of a call:
// what is wrong with the entity is in the result.
func (a *Adapter) readEntity(
	ctx context.Context, s provider.Shop, e catalog.Entity, raw []byte,
) (provider.Fetched, error) {
	f := provider.Fetched{Entity: e, Raw: raw, RawFormat: provider.JSON}
	var p product
	if e != catalog.Product {
		read(&f, raw, s.Profile.Language)
		return f, nil
	}
	if err := payload.Decode(raw, &p); err != nil {
		f.ExternalID, f.Malformed = payload.FindID(raw), &provider.Malformed{Reason: err.Error()}
		return f, nil
	}
	f.ExternalID, f.SourceUpdatedAt = string(p.ID), p.Modified.Time
	var variations []variation
	if p.variable() && payload.IsNumber(f.ExternalID) {
		pieces, all, err := a.variations(ctx, s, f.ExternalID, provider.MaxRaw-len(raw))
		if errors.Is(err, provider.ErrNotFound) {
			f.Gone = true // deleted since the page was read
			return f, nil
		}
		if malformed := new(provider.Malformed); errors.As(err, &malformed) {
			f.Malformed = &provider.Malformed{Reason: "variations: " + malformed.Reason}
			return f, nil
		}
		if err != nil {
			return f, err
		}
		f.Raw, f.RawFormat = payload.JoinLines(append([][]byte{raw}, pieces...)...), provider.JSONL
		variations = make([]variation, len(all))
		for i, text := range all {
			if err := payload.Decode(text, &variations[i]); err != nil {
				f.Malformed = &provider.Malformed{Reason: "variations: " + err.Error()}
				return f, nil
			}
		}
	}
	if p.Type == "variation" {
		f.Malformed = &provider.Malformed{Reason: "a variation is part of its product at /type"}
		return f, nil
	}
	f.SetDocument(p.document(variations, s.Profile.Language, s.Profile.Currency))
	return f, nil
}

// tooLarge reports whether a response is larger than its kind of call may be.
func tooLarge(err error) bool { return provider.ReasonOf(err) == provider.Reason(outbound.TooLarge) }

const maxAttempts = 4

// callWithRetry repeats a call after a temporary failure. A page of products needs a hundred such calls, and
// would hardly ever be complete at a shop that fails one in twenty.
func (a *Adapter) callWithRetry(
	ctx context.Context, s provider.Shop, request remote.Request,
) (*outbound.Response, error) {
	delays := backoff.Policy{Min: 100 * time.Millisecond, Max: 2 * time.Second}
	for attempt := 1; ; attempt++ {
		response, err := a.call(ctx, s, request)
		if err == nil {
			return response, nil
		}
		after, retryable := provider.RetryAfter(err)
		if tooLarge(err) || !retryable || after > delays.Max || attempt == maxAttempts {
			return nil, err
		}
		if backoff.Sleep(ctx, max(after, delays.Delay(attempt))) != nil {
			return nil, err
		}
	}
}

// variations returns the bodies of all pages of a product's variations, of most bytes together, and the
// variations in them.
func (a *Adapter) variations(
	ctx context.Context, s provider.Shop, id string, most int,
) (bodies [][]byte, all []json.RawMessage, err error) {
	for page := 1; page <= maxVariationPages; page++ {
		query := url.Values{"orderby": {"id"}, "order": {"asc"}, "page": {strconv.Itoa(page)},
			"per_page": {strconv.Itoa(maxPerPage)}}
		var some []json.RawMessage
		response, err := a.callWithRetry(ctx, s, remote.Request{Method: http.MethodGet,
			Path: listPath(catalog.Product) + "/" + id + "/variations", Query: query,
			MaxBody: outbound.MaxPage, Read: func(response *outbound.Response) (err error) {
				some, err = remote.Elements(response, maxPerPage)
				return err
			}})
		if err == nil {
			most -= len(response.Body)
		}
		if tooLarge(err) || most < 0 {
			return nil, nil, &provider.Malformed{Reason: string(outbound.TooLarge)}
		}
		if err != nil {
			return nil, nil, err
		}
		bodies, all = append(bodies, response.Body), append(all, some...)
		if len(some) == 0 || !hasMore(response.Header, page, len(some), maxPerPage) {
			return bodies, all, nil
		}
	}
	return nil, nil, &provider.Temporary{Reason: provider.ReasonPaging}
}
