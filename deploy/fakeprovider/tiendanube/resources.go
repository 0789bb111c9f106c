package tiendanube

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"storefront.internal/deploy/fakeprovider/stores"
)

const (
	usualPage   = 30
	largestPage = 200
)

// filter reads the conditions on ids and times that every list takes. wrong is the name of an invalid one.
func filter(q url.Values) (keep func(id int64, updated time.Time) bool, wrong string) {
	var after int64
	var from time.Time
	var err error
	if text := q.Get("since_id"); text != "" {
		if after, err = strconv.ParseInt(text, 10, 64); err != nil {
			return nil, "since_id"
		}
	}
	if text := q.Get("updated_at_min"); text != "" {
		if from, err = parseTime(text); err != nil {
			return nil, "updated_at_min"
		}
	}
	return func(id int64, updated time.Time) bool { return id > after && !updated.Before(from) }, ""
}

// page answers 404 behind the last page, else it sets the headers of a page and reports true.
func page(
	w http.ResponseWriter,
	r *http.Request,
	total func(keep func(int64, time.Time) bool) int,
) (stores.Page, bool) {
	p, wrong := stores.ReadPage(r.URL.Query(), usualPage, largestPage)
	keep, wrongFilter := filter(r.URL.Query())
	if wrong += wrongFilter; wrong != "" {
		stores.WriteJSON(w, http.StatusUnprocessableEntity, map[string][]string{wrong: {"is invalid"}})
		return p, false
	}
	n := total(keep)
	if p.Number > p.Last(n) {
		refuseWith(w, http.StatusNotFound, fmt.Sprintf("Last page is %d", p.Last(n)))
		return p, false
	}
	w.Header().Set("X-Total-Count", strconv.Itoa(n))
	p.Link(w, r, n)
	return p, true
}

func listDocuments(kind string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		table := stores.From(r).Tables[kind]
		var ids []int64
		p, ok := page(w, r, func(keep func(int64, time.Time) bool) int {
			ids = table.IDs(keep)
			return len(ids)
		})
		if ok {
			stores.WriteDocs(w, table.Pick(stores.Of(p, ids)), r.URL.Query().Get("fields"))
		}
	}
}

func getDocument(kind string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		d, ok := stores.Find(r, kind, "id")
		if !ok {
			refuseWith(w, http.StatusNotFound, "No such resource in "+kind)
			return
		}
		stores.WriteJSON(w, http.StatusOK, stores.Project(d.JSON, r.URL.Query().Get("fields")))
	}
}

func getStore(w http.ResponseWriter, r *http.Request) {
	id := stores.From(r).ID
	domain := "store" + id + ".shop.example"
	store := stores.JSON(object{
		"id": number(id), "name": object{"es": "Tienda " + id, "pt": "Loja " + id, "en": "Shop " + id},
		"country": "AR", "main_currency": Currency, "main_language": Language, "domains": []string{domain},
		"original_domain": domain, "email": "merchant@mail.example", "phone": "+54 11 50000000",
	})
	stores.WriteJSON(w, http.StatusOK, stores.Project(store, r.URL.Query().Get("fields")))
}
