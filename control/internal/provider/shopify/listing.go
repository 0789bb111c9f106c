package shopify

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/provider/payload"
	"storefront.internal/control/internal/provider/remote"
	"storefront.internal/shared/catalog"
)

// pageCursor is behind a node of a connection, or at a byte of the file of a bulk export. Its text is
// "after:<opaque>", "start:<failed exports>" or "bulk:<export>:<offset>:<failed exports>".
type pageCursor struct {
	after  string // of a connection
	bulk   int64  // number of the export; 0 when it is not started yet
	offset int64  // in its file
	failed int64  // exports that failed
}

func (p pageCursor) encode() provider.Cursor {
	switch {
	case p.after != "":
		return provider.Cursor("after:" + p.after)
	case p.bulk == 0:
		return remote.FormatCursor("start", p.failed)
	default:
		return remote.FormatCursor("bulk", p.bulk, p.offset, p.failed)
	}
}

func parseCursor(c provider.Cursor, bulk bool) (pageCursor, error) {
	if c == "" {
		return pageCursor{}, nil
	}
	if after, found := strings.CutPrefix(string(c), "after:"); found && !bulk && after != "" {
		return pageCursor{after: after}, nil
	}
	if n, ok := remote.ParseCursor(c, "start", 1); ok && bulk {
		return pageCursor{failed: n[0]}, nil
	}
	if n, ok := remote.ParseCursor(c, "bulk", 3); ok && bulk {
		return pageCursor{bulk: n[0], offset: n[1], failed: n[2]}, nil
	}
	return pageCursor{}, &provider.RequestRejected{Reason: provider.ReasonPaging}
}

// Page implements provider.Adapter. Collections and changes since a time are few and are read by a
// connection; everything else by a bulk export, since a connection ends after 25,000 entities.
func (a *Adapter) Page(
	ctx context.Context, s provider.Shop, e catalog.Entity, since time.Time, c provider.Cursor,
) (provider.Page, error) {
	bulk := since.IsZero() && e != catalog.Category
	at, err := parseCursor(c, bulk)
	switch {
	case err != nil:
		return provider.Page{}, err
	case !bulk:
		return a.listConnection(ctx, s, e, since, at)
	case at.bulk == 0:
		return a.startExport(ctx, s, e, at)
	default:
		return a.readExport(ctx, s, e, at)
	}
}

// listConnection reads one page of a connection.
func (a *Adapter) listConnection(
	ctx context.Context, s provider.Shop, e catalog.Entity, since time.Time, at pageCursor,
) (provider.Page, error) {
	query, member := listQuery(e)
	variables := map[string]any{}
	if at.after != "" {
		variables["after"] = at.after
	}
	if !since.IsZero() {
		variables["query"] = "updated_at:>='" + since.UTC().Format(time.RFC3339) + "'"
	}
	var data map[string]json.RawMessage
	if err := a.query(ctx, s, query, variables, costPage, &data); err != nil {
		return provider.Page{}, err
	}
	raw, ok := data[member]
	if !ok {
		return provider.Page{}, &provider.Temporary{Reason: provider.ReasonInvalidJSON}
	}
	var list pageOfEntities
	if err := remote.DecodeError(payload.Decode(raw, &list)); err != nil {
		return provider.Page{}, err
	}
	nodes, err := list.entities(pageSize(e))
	if err != nil {
		return provider.Page{}, err
	}
	page := provider.Page{}
	for _, node := range nodes {
		f, err := a.read(ctx, s, e, node)
		if err != nil {
			return provider.Page{}, err
		}
		page.Items = append(page.Items, f)
	}
	if list.PageInfo.HasNextPage {
		if list.PageInfo.EndCursor == "" || list.PageInfo.EndCursor == at.after {
			return provider.Page{}, &provider.Temporary{Reason: provider.ReasonPaging}
		}
		page.Next = pageCursor{after: list.PageInfo.EndCursor}.encode()
	}
	return page, nil
}

// pageOfEntities is a page of a connection whose entities are not decoded yet.
type pageOfEntities struct {
	Nodes    json.RawMessage `json:"nodes"`
	Edges    json.RawMessage `json:"edges"`
	PageInfo pagePosition    `json:"pageInfo"`
}

// entities returns the entities of a page of at most that many. A page with more is malformed.
func (p *pageOfEntities) entities(most int) (all []json.RawMessage, err error) {
	if len(p.Nodes) > 0 {
		if all, err = payload.Elements(p.Nodes, most); err != nil {
			return nil, remote.DecodeError(err)
		}
	}
	if len(p.Edges) == 0 {
		return all, nil
	}
	edges, err := payload.Elements(p.Edges, most-len(all))
	if err != nil {
		return nil, remote.DecodeError(err)
	}
	for _, raw := range edges {
		var edge struct {
			Node json.RawMessage `json:"node"`
		}
		if err := remote.DecodeError(payload.Decode(raw, &edge)); err != nil {
			return nil, err
		}
		all = append(all, edge.Node)
	}
	return all, nil
}

// pageSize is how many entities the query of listQuery asks for.
func pageSize(e catalog.Entity) int {
	if e == catalog.Category {
		return 200
	}
	return 10
}

func listQuery(e catalog.Entity) (query, member string) {
	switch e {
	case catalog.Product:
		return queryProducts, "products"
	case catalog.Category:
		return queryCollections, "collections"
	default:
		return queryOrders, "orders"
	}
}
