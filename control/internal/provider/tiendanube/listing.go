package tiendanube

import (
	"context"
	"errors"
	"math"
	"math/big"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"storefront.internal/control/internal/outbound"
	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/provider/payload"
	"storefront.internal/control/internal/provider/remote"
	"storefront.internal/shared/catalog"
)

// maxPerPage is the largest page. When a page is too large to read, a smaller one is requested.
const maxPerPage = 200

// pageCursor is behind an id, or at a page by its number. Its text is "after:<id>" or "page:<number>:<size>".
type pageCursor struct {
	after         string
	page, perPage int
}

func (p pageCursor) encode() provider.Cursor {
	if p.page > 0 {
		return remote.FormatCursor("page", int64(p.page), int64(p.perPage))
	}
	return provider.Cursor("after:" + p.after)
}

func parseCursor(c provider.Cursor) (pageCursor, error) {
	if after, found := strings.CutPrefix(string(c), "after:"); found && payload.IsNumber(after) || c == "" {
		return pageCursor{after: after}, nil
	}
	n, ok := remote.ParseCursor(c, "page", 2)
	if !ok || n[0] < 1 || n[0] > math.MaxInt32 || n[1] < 1 || n[1] > maxPerPage {
		return pageCursor{}, &provider.RequestRejected{Reason: provider.ReasonPaging}
	}
	return pageCursor{page: int(n[0]), perPage: int(n[1])}, nil
}

// Fetch implements provider.Adapter.
func (a *Adapter) Fetch(
	ctx context.Context, s provider.Shop, e catalog.Entity, externalID string,
) (provider.Fetched, error) {
	f := provider.Fetched{Entity: e, ExternalID: externalID, RawFormat: provider.JSON}
	if !payload.IsNumber(externalID) {
		f.Gone = true // the provider has no such ids
		return f, nil
	}
	response, err := a.call(ctx, s,
		remote.Request{Method: http.MethodGet, Path: listPath(e) + "/" + externalID,
			MaxBody: entityMaxBody(e), Read: func(response *outbound.Response) error {
				if err := remote.Entity(response); err != nil {
					return err
				}
				f = read(e, response.Body, language(s, response), s.Profile.Currency)
				return nil
			}})
	if errors.Is(err, provider.ErrNotFound) && remote.IsJSON(response) {
		f.Gone, f.Raw = true, response.Body
		return f, nil
	}
	if err != nil {
		return f, remote.UnexpectedNotFound(err)
	}
	return f.Requested(externalID)
}

func entityMaxBody(e catalog.Entity) int64 {
	if e == catalog.Category {
		return outbound.MaxSmall
	}
	return outbound.MaxPage
}

func language(s provider.Shop, a *outbound.Response) string {
	if s.Profile.Language != "" {
		return s.Profile.Language
	}
	return a.Header.Get("X-Main-Language")
}

// Page implements provider.Adapter.
func (a *Adapter) Page(
	ctx context.Context, s provider.Shop, e catalog.Entity, since time.Time, c provider.Cursor,
) (provider.Page, error) {
	at, err := parseCursor(c)
	if err != nil {
		return provider.Page{}, err
	}
	page := provider.Page{}
	read := func(perPage int) remote.Read {
		return func(response *outbound.Response) (err error) {
			page, err = readPage(s, e, at, response, perPage)
			return err
		}
	}
	response, err := a.listPage(ctx, s, e, since, at, read)
	if errors.Is(err, provider.ErrNotFound) && remote.IsJSON(response) {
		return provider.Page{}, nil // an empty listing, or behind the last page
	}
	if err != nil {
		return provider.Page{}, remote.UnexpectedNotFound(err)
	}
	return page, nil
}

// readPage makes the entities of a page.
func readPage(
	s provider.Shop, e catalog.Entity, at pageCursor, response *outbound.Response, perPage int,
) (provider.Page, error) {
	entities, err := remote.Elements(response, perPage)
	if err != nil {
		return provider.Page{}, err
	}
	page := provider.Page{Items: make([]provider.Fetched, 0, len(entities))}
	for _, raw := range entities {
		page.Items = append(page.Items, read(e, raw, language(s, response), s.Profile.Currency))
	}
	if len(entities) == 0 || !hasNextPage(response.Header, len(entities), perPage) {
		return page, nil
	}
	page.Next, err = nextCursor(at, perPage, page.Items)
	return page, err
}

// listPage requests one page, and a smaller one when it is too large to read.
func (a *Adapter) listPage(
	ctx context.Context, s provider.Shop, e catalog.Entity, since time.Time, at pageCursor,
	read func(perPage int) remote.Read,
) (*outbound.Response, error) {
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
	sizes := []int{maxPerPage, maxPerPage / 5, maxPerPage / 25, 1}
	if at.page > 0 {
		sizes = []int{at.perPage}
		query.Set("page", strconv.Itoa(at.page))
	}
	var (
		response *outbound.Response
		err      error
	)
	for _, perPage := range sizes {
		query.Set("per_page", strconv.Itoa(perPage))
		response, err = a.call(ctx, s, remote.Request{Method: http.MethodGet, Path: listPath(e), Query: query,
			MaxBody: entityMaxBody(e), Read: read(perPage)})
		if provider.ReasonOf(err) != provider.Reason(outbound.TooLarge) {
			return response, err
		}
	}
	return response, err
}

// nextCursor returns the cursor behind a page. When the ids of the first page do not rise, pages are counted;
// when those of a later page do not, the listing is not reliable.
func nextCursor(at pageCursor, perPage int, items []provider.Fetched) (provider.Cursor, error) {
	last, rising := at.after, true
	for _, item := range items {
		rising = rising && idGreater(item.ExternalID, last)
		last = item.ExternalID
	}
	switch {
	case at.page > 0:
		return pageCursor{page: at.page + 1, perPage: perPage}.encode(), nil
	case rising:
		return pageCursor{after: last}.encode(), nil
	case at.after == "":
		return pageCursor{page: 2, perPage: perPage}.encode(), nil
	default:
		return "", &provider.Temporary{Reason: provider.ReasonPaging}
	}
}

// idGreater compares two ids as numbers; "" is less than all.
func idGreater(a, b string) bool {
	x, ok := new(big.Int).SetString(a, 10)
	y, ok2 := new(big.Int).SetString(b, 10)
	return ok && (b == "" || ok2 && x.Cmp(y) > 0)
}

// hasNextPage reads the Link header, or counts when there is none.
func hasNextPage(h http.Header, got, perPage int) bool {
	links := strings.Join(h.Values("Link"), ",")
	if links == "" {
		return got >= perPage
	}
	return strings.Contains(links, `rel="next"`) || strings.Contains(links, "rel=next")
}
