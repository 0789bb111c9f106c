package woocommerce

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"storefront.internal/control/internal/outbound"
	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/provider/payload"
	"storefront.internal/control/internal/provider/remote"
	"storefront.internal/shared/catalog"
)

// mostVariations bounds the pages of one product's variations.
const mostVariations = 50

// Fetch implements provider.Adapter.
func (a *Adapter) Fetch(ctx context.Context, s provider.Store, e catalog.Entity, externalID string) (provider.Fetched, error) {
	f := provider.Fetched{Entity: e, ExternalID: externalID, Form: provider.JSON}
	if !isNumber(externalID) {
		f.Gone = true // no entity of a shop has such an id
		return f, nil
	}
	answer, err := a.call(ctx, s, http.MethodGet, path(e)+"/"+externalID, nil, nil)
	if errors.Is(err, provider.ErrGone) {
		f.Gone, f.Raw = true, answer.Body
		return f, nil
	}
	if err != nil {
		return f, err
	}
	if err := remote.Decode(answer, new(json.RawMessage)); err != nil {
		return f, err
	}
	f, err = a.one(ctx, s, e, answer.Body)
	if err != nil {
		return provider.Fetched{Entity: e, ExternalID: externalID}, err
	}
	if f.ExternalID != externalID && f.Malformed == nil {
		f.Document, f.Malformed = nil, &provider.Malformed{Reason: "another entity at /id"}
	}
	f.ExternalID = externalID
	if f.Malformed != nil {
		return f, f.Malformed
	}
	return f, nil
}

// read gives the spans of a page their documents, in their order.
func (a *Adapter) read(ctx context.Context, s provider.Store, e catalog.Entity, spans []json.RawMessage) ([]provider.Fetched, error) {
	items := make([]provider.Fetched, len(spans))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(flights)
	for i, span := range spans {
		g.Go(func() (err error) {
			items[i], err = a.one(ctx, s, e, span)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return items, nil
}

// one gives the span of one entity its document, for which a product with variations needs these too. The error is of a
// call; what is wrong with the entity is in it.
func (a *Adapter) one(ctx context.Context, s provider.Store, e catalog.Entity, span []byte) (provider.Fetched, error) {
	f := provider.Fetched{Entity: e, Raw: span, Form: provider.JSON}
	var p product
	if e != catalog.Product {
		read(&f, span, s.Profile.Language)
		return f, nil
	}
	if err := payload.Decode(span, &p); err != nil {
		f.ExternalID, f.Malformed = idOf(span), &provider.Malformed{Reason: err.Error()}
		return f, nil
	}
	f.ExternalID, f.SourceUpdatedAt = string(p.ID), p.Modified.Time
	var variations []variation
	if p.variable() && isNumber(f.ExternalID) {
		pieces, err := a.variations(ctx, s, f.ExternalID)
		if errors.Is(err, provider.ErrGone) {
			f.Gone = true // since the page was written
			return f, nil
		}
		if err != nil {
			return f, err
		}
		f.Raw, f.Form = payload.Join(append([][]byte{span}, pieces...)...), provider.JSONL
		for _, piece := range pieces {
			var some []variation
			if err := payload.Decode(piece, &some); err != nil {
				f.Malformed = &provider.Malformed{Reason: "variations: " + err.Error()}
				return f, nil
			}
			variations = append(variations, some...)
		}
	}
	if p.Type == "variation" {
		f.Malformed = &provider.Malformed{Reason: "a variation is part of its product at /type"}
		return f, nil
	}
	provider.Judge(&f, p.document(variations, s.Profile.Language, s.Profile.Currency))
	return f, nil
}

// How often what a page stands on is asked for, and the longest pause before it is asked for again.
const (
	mostTries    = 4
	longestPause = 2 * time.Second
)

// patiently asks again for what failed in passing: a page of products stands on a hundred such calls, and would never be
// whole at a shop that fails one in twenty.
func (a *Adapter) patiently(ctx context.Context, s provider.Store, path string, query url.Values) (answer *outbound.Answer, err error) {
	for try := range mostTries {
		if answer, err = a.call(ctx, s, http.MethodGet, path, query, nil); err == nil {
			return answer, nil
		}
		after, worth := provider.Retry(err)
		if !worth || after > longestPause || ctx.Err() != nil {
			return nil, err
		}
		timer := time.NewTimer(max(after, 50*time.Millisecond<<try))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, err
		}
	}
	return nil, err
}

// variations returns the bodies of all pages of a product's variations.
func (a *Adapter) variations(ctx context.Context, s provider.Store, id string) ([][]byte, error) {
	var bodies [][]byte
	for page := 1; page <= mostVariations; page++ {
		query := url.Values{"orderby": {"id"}, "order": {"asc"}, "page": {strconv.Itoa(page)}, "per_page": {strconv.Itoa(mostPerPage)}}
		answer, err := a.patiently(ctx, s, path(catalog.Product)+"/"+id+"/variations", query)
		if err != nil {
			return nil, err
		}
		var some []json.RawMessage
		if err := remote.Decode(answer, &some); err != nil {
			return nil, err
		}
		bodies = append(bodies, answer.Body)
		if len(some) == 0 || !hasMore(answer.Header, page, len(some), mostPerPage) {
			return bodies, nil
		}
	}
	return nil, &provider.Temporary{Reason: provider.ReasonPaging}
}
