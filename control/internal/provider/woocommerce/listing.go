package woocommerce

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"storefront.internal/control/internal/outbound"
	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/provider/remote"
	"storefront.internal/shared/catalog"
)

// maxPerPage is the largest page of the API.
const maxPerPage = 100

// pageCursor is how many entities were read, and how many there were in all at that time. Its text is
// "at:<offset>:<total>".
type pageCursor struct{ offset, total int }

func (p pageCursor) encode() provider.Cursor {
	return remote.FormatCursor("at", int64(p.offset), int64(p.total))
}

func parseCursor(c provider.Cursor) (pageCursor, error) {
	if c == "" {
		return pageCursor{}, nil
	}
	n, ok := remote.ParseCursor(c, "at", 2)
	if !ok {
		return pageCursor{}, &provider.RequestRejected{Reason: provider.ReasonPaging}
	}
	return pageCursor{int(n[0]), int(n[1])}, nil
}

// listing is what is the same for all pages of a listing.
type listing struct {
	path    string
	query   url.Values
	maxBody int64 // of a page
}

// listPage is one response of a listing.
type listPage struct {
	entities []json.RawMessage
	total    int // of all pages; -1 when the shop does not say
	more     bool
}

// Page implements provider.Adapter. Categories cannot be filtered by time, so all of them come.
func (a *Adapter) Page(
	ctx context.Context, s provider.Shop, e catalog.Entity, since time.Time, c provider.Cursor,
) (provider.Page, error) {
	at, err := parseCursor(c)
	if err != nil {
		return provider.Page{}, err
	}
	l := listing{path: listPath(e), maxBody: entityMaxBody(e),
		query: url.Values{"orderby": {"id"}, "order": {"asc"}}}
	if !since.IsZero() && e != catalog.Category {
		l.query.Set("modified_after", since.UTC().Add(-time.Second).Format("2006-01-02T15:04:05"))
		l.query.Set("dates_are_gmt", "true")
	}
	got, perPage, err := a.largestReadablePage(ctx, s, l, at.offset)
	if err != nil {
		return provider.Page{}, err
	}
	page := provider.Page{}
	if moved := at.total - got.total; at.offset > 0 && got.total >= 0 && moved > 0 {
		shifted, err := a.readShifted(ctx, s, l, at.offset, perPage, moved)
		if err != nil {
			return provider.Page{}, err
		}
		if page.Items, err = a.readEntities(ctx, s, e, shifted); err != nil {
			return provider.Page{}, err
		}
	}
	items, err := a.readEntities(ctx, s, e, got.entities)
	if err != nil {
		return provider.Page{}, err
	}
	page.Items = append(page.Items, items...)
	switch {
	case len(items) < len(got.entities): // too large to be read at once
		page.Next = pageCursor{at.offset + len(items), max(got.total, 0)}.encode()
	case got.more && len(got.entities) > 0:
		page.Next = pageCursor{at.offset + perPage, max(got.total, 0)}.encode()
	}
	return page, nil
}

// largestReadablePage reads the largest page at an offset that is small enough to read.
func (a *Adapter) largestReadablePage(
	ctx context.Context, s provider.Shop, l listing, offset int,
) (got listPage, perPage int, err error) {
	for _, perPage = range []int{maxPerPage, maxPerPage / 5, maxPerPage / 50, 1} {
		if offset%perPage != 0 {
			continue
		}
		got, err = a.readPage(ctx, s, l, offset/perPage+1, perPage)
		if !tooLarge(err) {
			break
		}
	}
	return got, perPage, err
}

// readShifted reads the entities that deletions moved in front of the offset: as many as a page has bytes,
// and one page more.
func (a *Adapter) readShifted(
	ctx context.Context, s provider.Shop, l listing, offset, perPage, moved int,
) (entities []json.RawMessage, err error) {
	const most = 10 // pages; the next full listing finds what more deletions hid
	pages := min((moved+perPage-1)/perPage, offset/perPage, most)
	size := int64(0)
	for n := 0; n < pages && size <= l.maxBody; n++ {
		got, err := a.readPage(ctx, s, l, offset/perPage-n, perPage)
		if err != nil {
			return nil, err
		}
		for _, raw := range got.entities {
			size += int64(len(raw))
		}
		entities = append(slices.Clone(got.entities), entities...)
	}
	return entities, nil
}

// readPage reads one page. A page behind the last one is empty.
func (a *Adapter) readPage(
	ctx context.Context, s provider.Shop, l listing, page, perPage int,
) (listPage, error) {
	parameters := url.Values{"page": {strconv.Itoa(page)}, "per_page": {strconv.Itoa(perPage)}}
	for name, values := range l.query {
		parameters[name] = values
	}
	got := listPage{total: -1}
	response, err := a.call(ctx, s, remote.Request{Method: http.MethodGet, Path: l.path, Query: parameters,
		MaxBody: l.maxBody, Read: func(response *outbound.Response) (err error) {
			got.entities, err = remote.Elements(response, perPage)
			return err
		}})
	var rejected *provider.RequestRejected
	if errors.As(err, &rejected) && page > 1 &&
		strings.HasSuffix(errorCode(response), "invalid_page_number") {
		return listPage{}, nil
	}
	if err != nil {
		return listPage{}, err
	}
	if total, err := strconv.Atoi(response.Header.Get("X-WP-Total")); err == nil && total >= 0 {
		got.total = total
	}
	got.more = hasMore(response.Header, page, len(got.entities), perPage)
	return got, nil
}

// hasMore reads the header, or counts when there is none.
func hasMore(h http.Header, page, got, perPage int) bool {
	if pages, err := strconv.Atoi(h.Get("X-WP-TotalPages")); err == nil {
		return page < pages
	}
	return got >= perPage
}
