package woocommerce

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"storefront.internal/deploy/fakeprovider/docs"
	"storefront.internal/deploy/fakeprovider/stores"
)

const (
	usualPage   = 10
	largestPage = 100
)

// bounds reads page and per_page; wrong is the parameter that cannot be.
func bounds(q url.Values) (page, size int, wrong string) {
	page, size = 1, usualPage
	for name, into := range map[string]*int{"page": &page, "per_page": &size} {
		if text := q.Get(name); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 || name == "per_page" && n > largestPage {
				return 0, 0, name
			}
			*into = n
		}
	}
	return page, size, ""
}

// modifiedBetween reads modified_after and modified_before. Without dates_are_gmt they are the shop's clock, three hours behind.
func modifiedBetween(q url.Values) (keep func(int64, time.Time) bool, wrong string) {
	var after, before time.Time
	for name, into := range map[string]*time.Time{"modified_after": &after, "modified_before": &before} {
		text := q.Get(name)
		if text == "" {
			continue
		}
		at, err := parseStamp(text)
		if err != nil {
			return nil, name
		}
		if gmt := q.Get("dates_are_gmt"); gmt != "true" && gmt != "1" && !strings.HasSuffix(text, "Z") {
			at = at.Add(3 * time.Hour)
		}
		*into = at
	}
	return func(_ int64, updated time.Time) bool {
		updated = updated.Truncate(time.Second)
		return (after.IsZero() || updated.After(after)) && (before.IsZero() || updated.Before(before))
	}, ""
}

func (f *Fake) list(kind string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		keep, wrong := modifiedBetween(q)
		if wrong != "" {
			refuseParam(w, wrong)
			return
		}
		if kind == stores.Categories {
			keep = nil // a term has no time of change, so nothing can be asked by it
		}
		ids := chosen(q, storeOf(r).Tables[kind].IDs(keep))
		sortIDs(q, kind, ids, storeOf(r).Tables[kind])
		f.page(w, r, ids, storeOf(r).Tables[kind])
	}
}

// chosen applies include and exclude.
func chosen(q url.Values, ids []int64) []int64 {
	has := func(name string, id int64) bool {
		return slices.Contains(strings.Split(q.Get(name), ","), strconv.FormatInt(id, 10))
	}
	return slices.DeleteFunc(ids, func(id int64) bool {
		return q.Get("include") != "" && !has("include", id) || has("exclude", id)
	})
}

// sortIDs puts the newest first, as the provider does when nothing is said; what is new during a listing moves the pages.
func sortIDs(q url.Values, kind string, ids []int64, table *docs.Table) {
	if q.Get("orderby") == "modified" {
		at := map[int64]time.Time{}
		table.IDs(func(id int64, updated time.Time) bool { at[id] = updated; return false })
		slices.SortStableFunc(ids, func(a, b int64) int { return at[a].Compare(at[b]) })
	}
	if order := q.Get("order"); order == "desc" || order == "" && kind != stores.Categories {
		slices.Reverse(ids)
	}
}

func (f *Fake) page(w http.ResponseWriter, r *http.Request, ids []int64, table *docs.Table) {
	page, size, wrong := bounds(r.URL.Query())
	if wrong != "" {
		refuseParam(w, wrong)
		return
	}
	last := (len(ids) + size - 1) / size
	from := min((page-1)*size, len(ids))
	out := []json.RawMessage{}
	for _, d := range table.Pick(ids[from:min(from+size, len(ids))]) {
		out = append(out, project(d.JSON, r.URL.Query().Get("_fields")))
	}
	totals(w, r, len(ids), page, last)
	w.Header().Set("Content-Type", jsonType)
	_, _ = w.Write(docs.Array(out)) // the caller is gone when this fails
}

func totals(w http.ResponseWriter, r *http.Request, total, page, last int) {
	w.Header().Set("X-WP-Total", strconv.Itoa(total))
	w.Header().Set("X-WP-TotalPages", strconv.Itoa(last))
	to := func(n int, rel string) string {
		u, err := url.ParseRequestURI(r.RequestURI)
		if err != nil {
			u = r.URL
		}
		q := u.Query()
		q.Set("page", strconv.Itoa(n))
		u.RawQuery, u.Scheme, u.Host = q.Encode(), "http", r.Host
		return fmt.Sprintf(`<%s>; rel="%s"`, u, rel)
	}
	var links []string
	if page > 1 {
		links = append(links, to(page-1, "prev"))
	}
	if page < last {
		links = append(links, to(page+1, "next"))
	}
	if len(links) > 0 {
		w.Header().Set("Link", strings.Join(links, ", "))
	}
}

func (f *Fake) variationsOf(w http.ResponseWriter, r *http.Request) {
	p, ok := f.find(r, stores.Products, "id")
	if !ok {
		refuse(w, http.StatusNotFound, "woocommerce_rest_product_invalid_id")
		return
	}
	f.page(w, r, variationIDs(p.JSON), storeOf(r).Tables[variations])
}

func refuseParam(w http.ResponseWriter, name string) {
	writeJSON(w, http.StatusBadRequest, object{
		"code": "rest_invalid_param", "message": "Invalid parameter(s): " + name,
		"data": object{"status": http.StatusBadRequest, "params": object{name: "invalid"}},
	})
}
