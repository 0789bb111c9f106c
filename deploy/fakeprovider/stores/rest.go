package stores

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"storefront.internal/deploy/fakeprovider/docs"
)

// JSON writes a value that always marshals: structs and maps of strings and numbers.
func JSON(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}

// ContentType is that of the providers' answers.
const ContentType = "application/json; charset=utf-8"

// WriteJSON answers a value.
func WriteJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", ContentType)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // fails only when the caller is gone
}

type storeKey struct{}

// WithStore returns the request with its store, for From.
func WithStore(r *http.Request, s *Store) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), storeKey{}, s))
}

// From returns the store of a request.
func From(r *http.Request) *Store {
	s, _ := r.Context().Value(storeKey{}).(*Store)
	return s
}

// Find returns the document whose id is a part of the path.
func Find(r *http.Request, kind, name string) (docs.Doc, bool) {
	id, err := strconv.ParseInt(r.PathValue(name), 10, 64)
	if err != nil {
		return docs.Doc{}, false
	}
	return From(r).Tables[kind].Get(id)
}

// Page is a part of a list, counted from 1.
type Page struct{ Number, Size int }

// ReadPage reads page and per_page. wrong is the name of a parameter that is out of bounds.
func ReadPage(q url.Values, usual, largest int) (p Page, wrong string) {
	p = Page{1, usual}
	for name, into := range map[string]*int{"page": &p.Number, "per_page": &p.Size} {
		if text := q.Get(name); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 || name == "per_page" && n > largest {
				return p, name
			}
			*into = n
		}
	}
	return p, ""
}

// Last is the number of the last page of so many elements.
func (p Page) Last(total int) int { return (total + p.Size - 1) / p.Size }

// Of returns the page's elements.
func Of[T any](p Page, all []T) []T {
	from := min((p.Number-1)*p.Size, len(all))
	return all[from:min(from+p.Size, len(all))]
}

// Link sets the Link header to the pages around this one.
func (p Page) Link(w http.ResponseWriter, r *http.Request, total int) {
	u, err := url.ParseRequestURI(r.RequestURI) // as the caller sent it: prefixes were stripped on the way
	if err != nil {
		u = r.URL
	}
	u.Scheme, u.Host = "http", r.Host
	var links []string
	for rel, n := range map[string]int{"prev": p.Number - 1, "next": p.Number + 1} {
		if n >= 1 && n <= p.Last(total) {
			q := u.Query()
			q.Set("page", strconv.Itoa(n))
			u.RawQuery = q.Encode()
			links = append(links, fmt.Sprintf(`<%s>; rel="%s"`, u, rel))
		}
	}
	if len(links) > 0 {
		w.Header().Set("Link", strings.Join(links, ", "))
	}
}

// WriteDocs answers an array of documents with the members that fields names; "" names all.
func WriteDocs(w http.ResponseWriter, page []docs.Doc, fields string) {
	w.Header().Set("Content-Type", ContentType)
	out := []byte{'['}
	for i, d := range page {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, Project(d.JSON, fields)...)
	}
	_, _ = w.Write(append(out, ']')) // fails only when the caller is gone
}

// Project keeps the members of a document that fields names, separated by commas; "" names all.
func Project(doc []byte, fields string) json.RawMessage {
	if fields == "" {
		return doc
	}
	members, err := docs.ParseMembers(doc)
	if err != nil {
		return doc
	}
	kept := docs.Members{}
	for name := range strings.SplitSeq(fields, ",") {
		if value, ok := members[strings.TrimSpace(name)]; ok {
			kept[strings.TrimSpace(name)] = value
		}
	}
	return JSON(kept)
}
