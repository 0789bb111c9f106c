package tiendanube

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"storefront.internal/deploy/fakeprovider/docs"
	"storefront.internal/deploy/fakeprovider/stores"
)

const (
	usualPage   = 30
	largestPage = 200
)

// window is the part of a list that a request asks for.
type window struct {
	page, size int
	fields     []string
}

func windowOf(q url.Values) (window, string) {
	w := window{page: 1, size: usualPage}
	for name, into := range map[string]*int{"page": &w.page, "per_page": &w.size} {
		if text := q.Get(name); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 || name == "per_page" && n > largestPage {
				return w, name
			}
			*into = n
		}
	}
	if text := q.Get("fields"); text != "" {
		w.fields = strings.Split(text, ",")
	}
	return w, ""
}

// filter reads the conditions on ids and times that every list takes.
func filter(q url.Values) (func(id int64, updated time.Time) bool, string) {
	var after int64
	var from, to time.Time
	if text := q.Get("since_id"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, "since_id"
		}
		after = n
	}
	for name, into := range map[string]*time.Time{"updated_at_min": &from, "updated_at_max": &to} {
		if text := q.Get(name); text != "" {
			at, err := parseStamp(text)
			if err != nil {
				return nil, name
			}
			*into = at
		}
	}
	return func(id int64, updated time.Time) bool {
		return id > after && (from.IsZero() || !updated.Before(from)) && (to.IsZero() || !updated.After(to))
	}, ""
}

func (f *Fake) list(kind string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		part, wrong := windowOf(q)
		keep, wrongFilter := filter(q)
		if wrong += wrongFilter; wrong != "" {
			unprocessable(w, wrong, "is invalid")
			return
		}
		table := storeOf(r).Tables[kind]
		ids := table.IDs(keep)
		last := (len(ids) + part.size - 1) / part.size
		if part.page > last {
			lastPage(w, last)
			return
		}
		from := (part.page - 1) * part.size
		page := table.Pick(ids[from:min(from+part.size, len(ids))])
		w.Header().Set("X-Total-Count", strconv.Itoa(len(ids)))
		links(w, r, part.page, last)
		writeDocs(w, page, part.fields)
	}
}

// links writes the Link header with the pages around this one.
func links(w http.ResponseWriter, r *http.Request, page, last int) {
	to := func(n int, rel string) string {
		u := here(r)
		q := u.Query()
		q.Set("page", strconv.Itoa(n))
		u.RawQuery = q.Encode()
		return fmt.Sprintf(`<%s>; rel="%s"`, u, rel)
	}
	var all []string
	if page < last {
		all = append(all, to(page+1, "next"), to(last, "last"))
	}
	if page > 1 {
		all = append(all, to(1, "first"), to(page-1, "prev"))
	}
	if len(all) > 0 {
		w.Header().Set("Link", strings.Join(all, ", "))
	}
}

// here is the URL that the caller used, whatever prefix was stripped on the way.
func here(r *http.Request) *url.URL {
	u, err := url.ParseRequestURI(r.RequestURI)
	if err != nil {
		u = &url.URL{Path: r.URL.Path, RawQuery: r.URL.RawQuery}
	}
	u.Scheme, u.Host = "http", r.Host
	if r.TLS != nil {
		u.Scheme = "https"
	}
	return u
}

func writeDocs(w http.ResponseWriter, page []docs.Doc, fields []string) {
	out := make([]json.RawMessage, len(page))
	for i, d := range page {
		out[i] = project(d.JSON, fields)
	}
	w.Header().Set("Content-Type", jsonType)
	_, _ = w.Write(docs.Array(out)) // the caller is gone when this fails
}

// project keeps the members that `fields` names; all when it names none.
func project(doc []byte, fields []string) json.RawMessage {
	if len(fields) == 0 {
		return doc
	}
	members, err := docs.ParseMembers(doc)
	if err != nil {
		return doc
	}
	kept := docs.Members{}
	for _, name := range fields {
		if value, ok := members[strings.TrimSpace(name)]; ok {
			kept[strings.TrimSpace(name)] = value
		}
	}
	return marshal(kept)
}

func (f *Fake) find(r *http.Request, kind string) (docs.Doc, bool) {
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil {
		return docs.Doc{}, false
	}
	return storeOf(r).Tables[kind].Get(id)
}

func (f *Fake) one(kind string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		d, ok := f.find(r, kind)
		if !ok {
			refuseWith(w, http.StatusNotFound, "No such resource in "+kind)
			return
		}
		part, _ := windowOf(r.URL.Query())
		writeJSON(w, http.StatusOK, project(d.JSON, part.fields))
	}
}

func (f *Fake) variants(w http.ResponseWriter, r *http.Request) {
	d, ok := f.find(r, stores.Products)
	members, err := docs.ParseMembers(d.JSON)
	if !ok || err != nil {
		refuseWith(w, http.StatusNotFound, "No such resource in products")
		return
	}
	writeJSON(w, http.StatusOK, members["variants"])
}

func (f *Fake) store(w http.ResponseWriter, r *http.Request) {
	s := storeOf(r)
	domain := "store" + s.ID + ".shop.example"
	currency := map[string]any{"currency": Currency, "active": true}
	store := marshal(map[string]any{
		"id": number(s.ID), "name": map[string]string{"es": "Tienda " + s.ID, "pt": "Loja " + s.ID, "en": "Shop " + s.ID}, "country": "AR",
		"main_currency": Currency, "main_language": Language, "languages": map[string]any{"es": currency, "pt": currency, "en": currency},
		"domains": []string{domain}, "original_domain": domain, "plan_name": "demo", "email": "merchant@mail.example",
		"contact_email": "merchant@mail.example", "phone": "+54 11 50000000", "business_id": "30-00000000-0", "created_at": stamp(1, f.firstDay()),
	})
	part, _ := windowOf(r.URL.Query())
	writeJSON(w, http.StatusOK, project(store, part.fields))
}

func (f *Fake) firstDay() time.Time { return time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC) }
