package shopify

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/provider/payload"
	"storefront.internal/control/internal/provider/remote"
	"storefront.internal/shared/catalog"
)

// place is what a cursor says: where a listing by connection goes on, or how far a bulk export is.
type place struct {
	after    string // of a connection
	bulk     string // number of the export; "" when it has still to be started
	offset   int64  // in its file
	attempts int    // exports that failed
}

// Cursors are "after:<opaque>", "start:<attempts>" and "bulk:<number>:<offset>:<attempts>".
func (p place) cursor() provider.Cursor {
	switch {
	case p.after != "":
		return provider.Cursor("after:" + p.after)
	case p.bulk == "":
		return provider.Cursor("start:" + strconv.Itoa(p.attempts))
	default:
		return provider.Cursor("bulk:" + p.bulk + ":" + strconv.FormatInt(p.offset, 10) + ":" + strconv.Itoa(p.attempts))
	}
}

func parseCursor(c provider.Cursor, bulk bool) (place, error) {
	wrong := &provider.Rejected{Reason: provider.ReasonPaging}
	how, rest, _ := strings.Cut(string(c), ":")
	switch {
	case c == "":
		return place{}, nil
	case how == "after" && !bulk && rest != "":
		return place{after: rest}, nil
	case how == "start" && bulk:
		n, err := strconv.Atoi(rest)
		if err != nil || n < 0 {
			return place{}, wrong
		}
		return place{attempts: n}, nil
	case how == "bulk" && bulk:
		parts := strings.Split(rest, ":")
		if len(parts) != 3 || !isNumber(parts[0]) {
			return place{}, wrong
		}
		offset, err := strconv.ParseInt(parts[1], 10, 64)
		n, err2 := strconv.Atoi(parts[2])
		if err != nil || err2 != nil || offset < 0 || n < 0 {
			return place{}, wrong
		}
		return place{bulk: parts[0], offset: offset, attempts: n}, nil
	default:
		return place{}, wrong
	}
}

// Page implements provider.Adapter. Collections are few, and what changed since a time is too: those are read by
// connection; the rest, which a connection would end short of, by a bulk export.
func (a *Adapter) Page(ctx context.Context, s provider.Store, e catalog.Entity, since time.Time, c provider.Cursor) (provider.Page, error) {
	bulk := since.IsZero() && e != catalog.Category
	at, err := parseCursor(c, bulk)
	switch {
	case err != nil:
		return provider.Page{}, err
	case !bulk:
		return a.connected(ctx, s, e, since, at)
	case at.bulk == "":
		return a.start(ctx, s, e, at)
	default:
		return a.exported(ctx, s, e, at)
	}
}

// connected reads one page of a connection.
func (a *Adapter) connected(ctx context.Context, s provider.Store, e catalog.Entity, since time.Time, at place) (provider.Page, error) {
	query, member := listOf(e)
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
	span, ok := data[member]
	if !ok {
		return provider.Page{}, &provider.Temporary{Reason: provider.ReasonInvalidJSON}
	}
	var list connection[json.RawMessage]
	if err := remote.Shape(payload.Decode(span, &list)); err != nil {
		return provider.Page{}, err
	}
	page := provider.Page{}
	for _, node := range list.all() {
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
		page.Next = place{after: list.PageInfo.EndCursor}.cursor()
	}
	return page, nil
}

func listOf(e catalog.Entity) (query, member string) {
	switch e {
	case catalog.Product:
		return queryProducts, "products"
	case catalog.Category:
		return queryCollections, "collections"
	default:
		return queryOrders, "orders"
	}
}
