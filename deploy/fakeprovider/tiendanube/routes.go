package tiendanube

import (
	"mime"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"storefront.internal/deploy/fakeprovider/bucket"
	"storefront.internal/deploy/fakeprovider/stores"
)

func (f *Fake) routes() http.Handler {
	mux := http.NewServeMux()
	for _, kind := range []string{stores.Products, stores.Categories, stores.Orders} {
		mux.HandleFunc("GET /{version}/{store}/"+kind, listDocuments(kind))
		mux.HandleFunc("GET /{version}/{store}/"+kind+"/{id}", getDocument(kind))
	}
	mux.HandleFunc("GET /{version}/{store}/store", getStore)
	mux.HandleFunc("GET /{version}/{store}/webhooks", listHooks)
	mux.HandleFunc("POST /{version}/{store}/webhooks", f.createHook)
	mux.HandleFunc("DELETE /{version}/{store}/webhooks/{id}", deleteHook)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { refuse(w, http.StatusNotFound) })
	versioned := regexp.MustCompile(`^/(v1|\d{4}-\d{2})/([^/]+)/`)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := versioned.FindStringSubmatch(r.URL.Path)
		if path == nil {
			refuse(w, http.StatusNotFound)
			return
		}
		f.admit(w, r, path[2], mux)
	})
}

// admit checks user agent, token, rate limit and content type before a call is routed.
func (f *Fake) admit(w http.ResponseWriter, r *http.Request, store string, next http.Handler) {
	if r.UserAgent() == "" {
		refuseWith(
			w,
			http.StatusBadRequest,
			"Missing a valid User-Agent. Tell us your app's name and a contact.",
		)
		return
	}
	token := bearer(r)
	if !strings.HasPrefix(token, stores.TokenPrefix) { // does not open a store
		refuse(w, http.StatusUnauthorized)
		return
	}
	s := f.Store(store)
	if status := s.Access.Check(token); status != http.StatusOK {
		refuse(w, status)
		return
	}
	state, ok := s.Bucket.Add(1)
	writeLimits(w, state)
	if !ok {
		refuse(w, http.StatusTooManyRequests)
		return
	}
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); r.Method == http.MethodPost &&
		kind != "application/json" {
		refuse(w, http.StatusUnsupportedMediaType)
		return
	}
	w.Header().Set("X-Main-Language", Language)
	next.ServeHTTP(w, stores.WithStore(r, s))
}

// bearer reads the token. The provider's older documentation names the header Authentication, the newest
// Authorization.
func bearer(r *http.Request) string {
	for _, name := range []string{"Authentication", "Authorization"} {
		if scheme, token, ok := strings.Cut(r.Header.Get(name), " "); ok &&
			strings.EqualFold(scheme, "bearer") {
			return token
		}
	}
	return ""
}

// writeLimits sets the headers of the bucket. The reset is in milliseconds until it is empty.
func writeLimits(w http.ResponseWriter, s bucket.State) {
	w.Header().Set("X-Rate-Limit-Limit", strconv.Itoa(int(s.Capacity)))
	w.Header().Set("X-Rate-Limit-Remaining", strconv.Itoa(int(s.Room)))
	w.Header().Set("X-Rate-Limit-Reset", strconv.FormatInt(s.Empties.Milliseconds(), 10))
}

// number writes an id as an integer, as the provider does; other ids of tests stay text.
func number(id string) any {
	if n, err := strconv.ParseInt(id, 10, 64); err == nil {
		return n
	}
	return id
}

// refuse writes the provider's error of a status.
func refuse(w http.ResponseWriter, status int) { refuseWith(w, status, http.StatusText(status)) }

func refuseWith(w http.ResponseWriter, status int, description string) {
	if status == http.StatusBadRequest {
		stores.WriteJSON(w, status, object{"error": description})
		return
	}
	stores.WriteJSON(
		w,
		status,
		object{"code": status, "message": http.StatusText(status), "description": description},
	)
}
