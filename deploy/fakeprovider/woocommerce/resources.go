package woocommerce

import (
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

// modifiedAfter reads the filter of that name. Without dates_are_gmt it is in the shop's local time.
func modifiedAfter(q url.Values) (keep func(int64, time.Time) bool, ok bool) {
	text := q.Get("modified_after")
	if text == "" {
		return nil, true
	}
	after, err := parseTime(text)
	if gmt := q.Get("dates_are_gmt"); gmt != "true" && gmt != "1" && !strings.HasSuffix(text, "Z") {
		after = after.Add(behindUTC)
	}
	return func(_ int64, updated time.Time) bool { return updated.Truncate(time.Second).After(after) },
		err == nil
}

// listDocuments puts the newest first unless order says otherwise, as the provider does.
func listDocuments(kind string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		keep, ok := modifiedAfter(q)
		if !ok {
			refuseParam(w, "modified_after")
			return
		}
		if kind == stores.Categories {
			keep = nil // a category has no time of change
		}
		ids := stores.From(r).Tables[kind].IDs(keep)
		if order := q.Get("order"); order == "desc" || order == "" && kind != stores.Categories {
			slices.Reverse(ids)
		}
		writePage(w, r, ids, stores.From(r).Tables[kind])
	}
}

func writePage(w http.ResponseWriter, r *http.Request, ids []int64, table *docs.Table) {
	if p, ok := page(w, r, len(ids)); ok {
		stores.WriteDocs(w, table.Pick(stores.Of(p, ids)), r.URL.Query().Get("_fields"))
	}
}

// page sets the headers of a page; a page behind the last one is empty.
func page(w http.ResponseWriter, r *http.Request, total int) (stores.Page, bool) {
	p, wrong := stores.ReadPage(r.URL.Query(), usualPage, largestPage)
	if wrong != "" {
		refuseParam(w, wrong)
		return p, false
	}
	w.Header().Set("X-WP-Total", strconv.Itoa(total))
	w.Header().Set("X-WP-TotalPages", strconv.Itoa(p.Last(total)))
	p.Link(w, r, total)
	return p, true
}

func getDocument(kind, missing string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		d, ok := stores.Find(r, kind, "id")
		if !ok {
			refuse(w, http.StatusNotFound, missing)
			return
		}
		stores.WriteJSON(w, http.StatusOK, stores.Project(d.JSON, r.URL.Query().Get("_fields")))
	}
}

// below serves products/{id}/variations and products/categories/{id}: one pattern matches both.
func below(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.PathValue("id") == "categories":
		r.SetPathValue("id", r.PathValue("below"))
		getDocument(stores.Categories, "woocommerce_rest_term_invalid")(w, r)
	case r.PathValue("below") == "variations":
		p, ok := stores.Find(r, stores.Products, "id")
		if !ok {
			refuse(w, http.StatusNotFound, "woocommerce_rest_product_invalid_id")
			return
		}
		writePage(w, r, variationIDs(p.JSON), stores.From(r).Tables[variations])
	default:
		refuse(w, http.StatusNotFound, "rest_no_route")
	}
}

func systemStatus(w http.ResponseWriter, r *http.Request) {
	stores.WriteJSON(w, http.StatusOK, object{
		"environment": object{"site_url": site(stores.From(r).ID), "version": "9.9.0", "language": "es_AR"},
		"settings":    object{"currency": Currency},
	})
}
