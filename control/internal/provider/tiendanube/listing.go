package tiendanube

import (
	"context"
	"encoding/json"
	"errors"
	"math/big"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"storefront.internal/control/internal/outbound"
	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/provider/remote"
	"storefront.internal/shared/catalog"
)

// mostPerPage is the greatest page; entities too large for one answer are asked for in smaller ones.
const mostPerPage = 200

// place is what a cursor says: after an id, or a page by its number.
type place struct {
	after     string
	page, per int
}

func (p place) cursor() provider.Cursor {
	if p.page > 0 {
		return provider.Cursor("page:" + strconv.Itoa(p.page) + ":" + strconv.Itoa(p.per))
	}
	return provider.Cursor("after:" + p.after)
}

func parseCursor(c provider.Cursor) (place, error) {
	how, rest, _ := strings.Cut(string(c), ":")
	switch {
	case c == "":
		return place{}, nil
	case how == "after" && isNumber(rest):
		return place{after: rest}, nil
	case how == "page":
		number, size, _ := strings.Cut(rest, ":")
		page, err := strconv.Atoi(number)
		per, err2 := strconv.Atoi(size)
		if err == nil && err2 == nil && page > 0 && per > 0 && per <= mostPerPage {
			return place{page: page, per: per}, nil
		}
	}
	return place{}, &provider.Rejected{Reason: provider.ReasonPaging}
}

// Fetch implements provider.Adapter.
func (a *Adapter) Fetch(ctx context.Context, s provider.Store, e catalog.Entity, externalID string) (provider.Fetched, error) {
	f := provider.Fetched{Entity: e, ExternalID: externalID, Form: provider.JSON}
	if !isNumber(externalID) {
		f.Gone = true // no entity of this provider has such an id
		return f, nil
	}
	answer, err := a.call(ctx, s, http.MethodGet, path(e)+"/"+externalID, nil, nil)
	if errors.Is(err, provider.ErrGone) && remote.IsJSON(answer) {
		f.Gone, f.Raw = true, answer.Body
		return f, nil
	}
	if err != nil {
		return f, notGone(err)
	}
	if err := remote.Decode(answer, new(json.RawMessage)); err != nil {
		return f, err
	}
	f = read(e, answer.Body, language(s, answer), s.Profile.Currency)
	if f.ExternalID != externalID && f.Malformed == nil {
		f.Document, f.Malformed = nil, &provider.Malformed{Reason: "another entity at /id"}
	}
	f.ExternalID = externalID
	if f.Malformed != nil {
		return f, f.Malformed
	}
	return f, nil
}

// notGone is for a 404 that does not come from the API itself: it deletes nothing.
func notGone(err error) error {
	if errors.Is(err, provider.ErrGone) {
		return &provider.Temporary{Reason: provider.ReasonContentType, Status: http.StatusNotFound}
	}
	return err
}

func language(s provider.Store, a *outbound.Answer) string {
	if s.Profile.Language != "" {
		return s.Profile.Language
	}
	return a.Header.Get("X-Main-Language")
}

// Page implements provider.Adapter.
func (a *Adapter) Page(ctx context.Context, s provider.Store, e catalog.Entity, since time.Time, c provider.Cursor) (provider.Page, error) {
	at, err := parseCursor(c)
	if err != nil {
		return provider.Page{}, err
	}
	answer, per, err := a.list(ctx, s, e, since, at)
	if errors.Is(err, provider.ErrGone) && remote.IsJSON(answer) {
		return provider.Page{}, nil // "last page is n": nothing, or nothing more
	}
	if err != nil {
		return provider.Page{}, notGone(err)
	}
	var spans []json.RawMessage
	if err := remote.Decode(answer, &spans); err != nil {
		return provider.Page{}, err
	}
	page := provider.Page{Items: make([]provider.Fetched, 0, len(spans))}
	for _, span := range spans {
		page.Items = append(page.Items, read(e, span, language(s, answer), s.Profile.Currency))
	}
	if len(spans) == 0 || !hasNext(answer.Header, len(spans), per) {
		return page, nil
	}
	page.Next, err = following(at, per, page.Items)
	return page, err
}

// list asks for one page, for a smaller one where it is too large to read.
func (a *Adapter) list(ctx context.Context, s provider.Store, e catalog.Entity, since time.Time, at place) (*outbound.Answer, int, error) {
	query := url.Values{}
	if !since.IsZero() {
		query.Set("updated_at_min", since.UTC().Format(time.RFC3339))
	}
	if e == catalog.Product {
		query.Set("sort_by", "created-at-ascending")
	}
	if at.after != "" {
		query.Set("since_id", at.after)
	}
	sizes := []int{mostPerPage, mostPerPage / 5, mostPerPage / 25}
	if at.page > 0 {
		sizes = []int{at.per}
		query.Set("page", strconv.Itoa(at.page))
	}
	var (
		answer *outbound.Answer
		err    error
	)
	for _, per := range sizes {
		query.Set("per_page", strconv.Itoa(per))
		answer, err = a.call(ctx, s, http.MethodGet, path(e), query, nil)
		if provider.ReasonOf(err) != provider.Reason(outbound.TooLarge) {
			return answer, per, err
		}
	}
	return answer, 0, err
}

// following returns the cursor behind a page. Ids that do not rise, on the first page, mean that the listing has an order
// of its own; later they mean that it cannot be relied on.
func following(at place, per int, items []provider.Fetched) (provider.Cursor, error) {
	last, rising := at.after, true
	for _, item := range items {
		rising = rising && greater(item.ExternalID, last)
		last = item.ExternalID
	}
	switch {
	case at.page > 0:
		return place{page: at.page + 1, per: per}.cursor(), nil
	case rising:
		return place{after: last}.cursor(), nil
	case at.after == "":
		return place{page: 2, per: per}.cursor(), nil
	default:
		return "", &provider.Temporary{Reason: provider.ReasonPaging}
	}
}

// greater compares two ids as numbers; "" is less than all.
func greater(a, b string) bool {
	x, ok := new(big.Int).SetString(a, 10)
	y, ok2 := new(big.Int).SetString(b, 10)
	return ok && (b == "" || ok2 && x.Cmp(y) > 0)
}

// hasNext follows the Link header, or counts where there is none.
func hasNext(h http.Header, got, per int) bool {
	links := strings.Join(h.Values("Link"), ",")
	if links == "" {
		return got >= per
	}
	return strings.Contains(links, `rel="next"`) || strings.Contains(links, "rel=next")
}
