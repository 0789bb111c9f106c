package shopify

import (
	"context"
	"encoding/json"

	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/provider/payload"
	"storefront.internal/control/internal/provider/remote"
	"storefront.internal/shared/catalog"
)

// Estimated costs of queries, in points.
const (
	costFetch = 300
	costPage  = 600
	costSmall = 20
)

// Bounds of one entity's nested lists.
const (
	maxFurtherPages = 20  // of one list: 2,048 variants are nine pages
	maxNested       = 250 // elements that a further page is asked for, at most
)

// Fetch implements provider.Adapter.
func (a *Adapter) Fetch(
	ctx context.Context, s provider.Shop, e catalog.Entity, externalID string,
) (provider.Fetched, error) {
	f := provider.Fetched{Entity: e, ExternalID: externalID, RawFormat: provider.JSON}
	if !payload.IsNumber(externalID) {
		f.Gone = true // the provider has no such ids
		return f, nil
	}
	query, member, kind := entityQuery(e)
	var data map[string]json.RawMessage
	variables := map[string]any{"id": gid(kind, externalID)}
	if err := a.query(ctx, s, query, variables, costFetch, &data); err != nil {
		return f, err
	}
	raw, ok := data[member]
	if !ok {
		return f, &provider.Temporary{Reason: provider.ReasonInvalidJSON}
	}
	if string(raw) == "null" {
		f.Gone, f.Raw = true, raw
		return f, nil
	}
	f, err := a.read(ctx, s, e, raw)
	if err != nil {
		return provider.Fetched{Entity: e, ExternalID: externalID}, err
	}
	return f.Requested(externalID)
}

func entityQuery(e catalog.Entity) (query, member, kind string) {
	switch e {
	case catalog.Product:
		return queryProduct, "product", "Product"
	case catalog.Category:
		return queryCollection, "collection", "Collection"
	default:
		return queryOrder, "order", "Order"
	}
}

// read decodes one entity and sets its document; it asks for the further pages of its lists. The error is
// that of a call: what is wrong with the entity is in the result.
func (a *Adapter) read(
	ctx context.Context, s provider.Shop, e catalog.Entity, raw []byte,
) (provider.Fetched, error) {
	f := provider.Fetched{Entity: e, Raw: raw, RawFormat: provider.JSON}
	var err error
	switch e {
	case catalog.Product:
		var p product
		if decodeFailed(&f, raw, &p) {
			return f, nil
		}
		if err = a.readRemainingLists(ctx, s, &f, &p); err == nil && f.Malformed == nil {
			p.setDocument(&f, s.Profile)
		}
	case catalog.Category:
		var c collection
		if !decodeFailed(&f, raw, &c) {
			c.setDocument(&f, s.Profile)
		}
	default:
		var o order
		if decodeFailed(&f, raw, &o) {
			return f, nil
		}
		err = readRemaining(ctx, a, s, &f, queryLines, o.ID, &o.Lines,
			func(q *order) *connection[line] { return &q.Lines })
		if err == nil && f.Malformed == nil {
			o.setDocument(&f, s.Profile)
		}
	}
	return f, err
}

// decodeFailed decodes an entity; when that fails it sets Malformed and reports true.
func decodeFailed(f *provider.Fetched, raw []byte, into any) bool {
	err := payload.Decode(raw, into)
	if err == nil {
		return false
	}
	var named struct {
		ID payload.Text `json:"id"`
	}
	payload.Peek(raw, &named)
	f.ExternalID, _ = parseGID(string(named.ID))
	f.Malformed = &provider.Malformed{Reason: err.Error()}
	return true
}

// readRemainingLists reads the further pages of a product's lists.
func (a *Adapter) readRemainingLists(
	ctx context.Context, s provider.Shop, f *provider.Fetched, p *product,
) error {
	err := readRemaining(ctx, a, s, f, queryVariants, p.ID, &p.Variants,
		func(q *product) *connection[variant] { return &q.Variants })
	if err != nil {
		return err
	}
	err = readRemaining(ctx, a, s, f, queryMedia, p.ID, &p.Media,
		func(q *product) *connection[media] { return &q.Media })
	if err != nil {
		return err
	}
	return readRemaining(ctx, a, s, f, queryMemberships, p.ID, &p.Collections,
		func(q *product) *connection[collection] { return &q.Collections })
}

// readRemaining appends the further pages of one list of an entity, and their JSON to Raw.
func readRemaining[E, T any](ctx context.Context, a *Adapter, s provider.Shop, f *provider.Fetched, query,
	id string, list *connection[T], of func(*E) *connection[T]) error {
	for range maxFurtherPages {
		if !list.PageInfo.HasNextPage {
			return nil
		}
		var data map[string]json.RawMessage
		variables := map[string]any{"id": id, "after": list.PageInfo.EndCursor}
		if err := a.query(ctx, s, query, variables, costPage, &data); err != nil {
			return err
		}
		if len(data) != 1 {
			return &provider.Temporary{Reason: provider.ReasonInvalidJSON}
		}
		for _, raw := range data { // one member
			if string(raw) == "null" { // deleted in the meantime
				return &provider.Temporary{Reason: provider.ReasonPaging}
			}
			var more E
			if err := remote.DecodeError(payload.Decode(raw, &more)); err != nil {
				f.Malformed = &provider.Malformed{Reason: "further page: " + err.Error()}
				return nil
			}
			next := of(&more)
			if len(next.items()) > maxNested || len(f.Raw)+len(raw) > provider.MaxRaw {
				f.Malformed = &provider.Malformed{Reason: "further page: too_large"}
				return nil
			}
			list.Nodes = append(list.items(), next.items()...)
			list.Edges, list.PageInfo = nil, next.PageInfo
			f.Raw, f.RawFormat = payload.JoinLines(f.Raw, raw), provider.JSONL
		}
	}
	return &provider.Temporary{Reason: provider.ReasonPaging}
}
