package shopify

import (
	"context"
	"encoding/json"

	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/provider/payload"
	"storefront.internal/control/internal/provider/remote"
	"storefront.internal/shared/catalog"
)

// What queries are thought to cost, in points.
const (
	costFetch = 300
	costPage  = 600
	costSmall = 20
)

// mostMore bounds the further pages of one entity's nested lists: 2,048 variants are nine.
const mostMore = 20

// Fetch implements provider.Adapter.
func (a *Adapter) Fetch(ctx context.Context, s provider.Store, e catalog.Entity, externalID string) (provider.Fetched, error) {
	f := provider.Fetched{Entity: e, ExternalID: externalID, Form: provider.JSON}
	if !isNumber(externalID) {
		f.Gone = true // no entity of this provider has such an id
		return f, nil
	}
	query, member, kind := queryOf(e)
	var data map[string]json.RawMessage
	if err := a.query(ctx, s, query, map[string]any{"id": gid(kind, externalID)}, costFetch, &data); err != nil {
		return f, err
	}
	span, ok := data[member]
	if !ok {
		return f, &provider.Temporary{Reason: provider.ReasonInvalidJSON}
	}
	if string(span) == "null" {
		f.Gone, f.Raw = true, span
		return f, nil
	}
	f, err := a.read(ctx, s, e, span)
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

func queryOf(e catalog.Entity) (query, member, kind string) {
	switch e {
	case catalog.Product:
		return queryProduct, "product", "Product"
	case catalog.Category:
		return queryCollection, "collection", "Collection"
	default:
		return queryOrder, "order", "Order"
	}
}

// read gives the span of one entity its document, for which what its lists hold beyond their first page is asked for too.
// The error is of a call; what is wrong with the entity is in it.
func (a *Adapter) read(ctx context.Context, s provider.Store, e catalog.Entity, span []byte) (provider.Fetched, error) {
	f := provider.Fetched{Entity: e, Raw: span, Form: provider.JSON}
	var err error
	switch e {
	case catalog.Product:
		var p product
		if malformed(&f, span, &p) {
			return f, nil
		}
		if err = a.complete(ctx, s, &f, &p); err == nil && f.Malformed == nil {
			p.judge(&f, s.Profile)
		}
	case catalog.Category:
		var c collection
		if !malformed(&f, span, &c) {
			c.judge(&f, s.Profile)
		}
	default:
		var o order
		if malformed(&f, span, &o) {
			return f, nil
		}
		if err = a.completeOrder(ctx, s, &f, &o); err == nil && f.Malformed == nil {
			o.judge(&f, s.Profile)
		}
	}
	return f, err
}

// malformed decodes a span, or notes why it cannot be.
func malformed(f *provider.Fetched, span []byte, into any) bool {
	err := payload.Decode(span, into)
	if err == nil {
		return false
	}
	var named struct {
		ID payload.Text `json:"id"`
	}
	_ = payload.Decode(span, &named)
	f.ExternalID, _ = number(string(named.ID))
	f.Malformed = &provider.Malformed{Reason: err.Error()}
	return true
}

// complete reads the further pages of a product's lists into it.
func (a *Adapter) complete(ctx context.Context, s provider.Store, f *provider.Fetched, p *product) error {
	if err := rest(ctx, a, s, f, queryVariants, p.ID, &p.Variants, func(q *product) *connection[variant] { return &q.Variants }); err != nil {
		return err
	}
	if err := rest(ctx, a, s, f, queryMedia, p.ID, &p.Media, func(q *product) *connection[media] { return &q.Media }); err != nil {
		return err
	}
	return rest(ctx, a, s, f, queryMemberships, p.ID, &p.Collections, func(q *product) *connection[collection] { return &q.Collections })
}

func (a *Adapter) completeOrder(ctx context.Context, s provider.Store, f *provider.Fetched, o *order) error {
	return rest(ctx, a, s, f, queryLines, o.ID, &o.Lines, func(q *order) *connection[line] { return &q.Lines })
}

// rest appends the further pages of one list of an entity, and their spans to what was returned for it.
func rest[E, T any](ctx context.Context, a *Adapter, s provider.Store, f *provider.Fetched, query, id string, list *connection[T], of func(*E) *connection[T]) error {
	for range mostMore {
		if !list.PageInfo.HasNextPage {
			return nil
		}
		var data map[string]json.RawMessage
		if err := a.query(ctx, s, query, map[string]any{"id": id, "after": list.PageInfo.EndCursor}, costPage, &data); err != nil {
			return err
		}
		if len(data) != 1 {
			return &provider.Temporary{Reason: provider.ReasonInvalidJSON}
		}
		for _, span := range data { // of one member
			if string(span) == "null" { // gone meanwhile
				return &provider.Temporary{Reason: provider.ReasonPaging}
			}
			var more E
			if err := remote.Shape(payload.Decode(span, &more)); err != nil {
				f.Malformed = &provider.Malformed{Reason: "further page: " + err.Error()}
				return nil
			}
			next := of(&more)
			list.Nodes = append(list.all(), next.all()...)
			list.Edges, list.PageInfo = nil, next.PageInfo
			f.Raw, f.Form = payload.Join(f.Raw, span), provider.JSONL
		}
	}
	return &provider.Temporary{Reason: provider.ReasonPaging}
}
