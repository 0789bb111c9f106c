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

// mostPerPage is the greatest page of the API.
const mostPerPage = 100

// place is what a cursor says: how many were read, and how many there were in all when they were.
type place struct{ offset, total int }

func (p place) cursor() provider.Cursor {
	return provider.Cursor("at:" + strconv.Itoa(p.offset) + ":" + strconv.Itoa(p.total))
}

func parseCursor(c provider.Cursor) (place, error) {
	if c == "" {
		return place{}, nil
	}
	parts := strings.Split(string(c), ":")
	if len(parts) == 3 && parts[0] == "at" {
		offset, err := strconv.Atoi(parts[1])
		total, err2 := strconv.Atoi(parts[2])
		if err == nil && err2 == nil && offset >= 0 && total >= 0 {
			return place{offset, total}, nil
		}
	}
	return place{}, &provider.Rejected{Reason: provider.ReasonPaging}
}

// sheet is one answer of a listing.
type sheet struct {
	spans []json.RawMessage
	total int // of all pages; -1 when the shop does not say
	more  bool
}

// Page implements provider.Adapter. Categories cannot be asked for by their time: all of them come.
func (a *Adapter) Page(ctx context.Context, s provider.Store, e catalog.Entity, since time.Time, c provider.Cursor) (provider.Page, error) {
	at, err := parseCursor(c)
	if err != nil {
		return provider.Page{}, err
	}
	query := url.Values{"orderby": {"id"}, "order": {"asc"}}
	if !since.IsZero() && e != catalog.Category {
		query.Set("modified_after", since.UTC().Add(-time.Second).Format("2006-01-02T15:04:05"))
		query.Set("dates_are_gmt", "true")
	}
	got, per, err := a.fitting(ctx, s, e, query, at.offset)
	if err != nil {
		return provider.Page{}, err
	}
	spans := got.spans
	if moved := at.total - got.total; at.offset > 0 && got.total >= 0 && moved > 0 {
		if spans, err = a.again(ctx, s, e, query, at.offset, per, moved, spans); err != nil {
			return provider.Page{}, err
		}
	}
	page := provider.Page{}
	if page.Items, err = a.read(ctx, s, e, spans); err != nil {
		return provider.Page{}, err
	}
	if got.more && len(got.spans) > 0 {
		page.Next = place{at.offset + per, max(got.total, 0)}.cursor()
	}
	return page, nil
}

// fitting reads the largest page at an offset that is small enough to read.
func (a *Adapter) fitting(ctx context.Context, s provider.Store, e catalog.Entity, query url.Values, offset int) (got sheet, per int, err error) {
	for _, per = range []int{mostPerPage, mostPerPage / 5, mostPerPage / 50, 1} {
		if offset%per != 0 {
			continue
		}
		got, err = a.sheet(ctx, s, path(e), query, offset/per+1, per)
		if provider.ReasonOf(err) != provider.Reason(outbound.TooLarge) {
			break
		}
	}
	return got, per, err
}

// again reads what was moved over the offset by deletions, and puts it before what was read.
func (a *Adapter) again(ctx context.Context, s provider.Store, e catalog.Entity, query url.Values, offset, per, moved int, spans []json.RawMessage) ([]json.RawMessage, error) {
	const most = 10 // more deletions at once than this many pages hold are for the next full listing
	pages := min((moved+per-1)/per, offset/per, most)
	for n := range pages {
		got, err := a.sheet(ctx, s, path(e), query, offset/per-n, per)
		if err != nil {
			return nil, err
		}
		spans = append(slices.Clone(got.spans), spans...)
	}
	return spans, nil
}

// sheet reads one page. One behind the last is empty.
func (a *Adapter) sheet(ctx context.Context, s provider.Store, path string, query url.Values, page, per int) (sheet, error) {
	asked := url.Values{"page": {strconv.Itoa(page)}, "per_page": {strconv.Itoa(per)}}
	for name, values := range query {
		asked[name] = values
	}
	answer, err := a.call(ctx, s, http.MethodGet, path, asked, nil)
	var rejected *provider.Rejected
	if errors.As(err, &rejected) && page > 1 && strings.HasSuffix(codeOf(answer), "invalid_page_number") {
		return sheet{}, nil
	}
	if err != nil {
		return sheet{}, err
	}
	got := sheet{total: -1}
	if err := remote.Decode(answer, &got.spans); err != nil {
		return sheet{}, err
	}
	if total, err := strconv.Atoi(answer.Header.Get("X-WP-Total")); err == nil && total >= 0 {
		got.total = total
	}
	got.more = hasMore(answer.Header, page, len(got.spans), per)
	return got, nil
}

// hasMore believes the header, and counts where there is none.
func hasMore(h http.Header, page, got, per int) bool {
	if pages, err := strconv.Atoi(h.Get("X-WP-TotalPages")); err == nil {
		return page < pages
	}
	return got >= per
}
