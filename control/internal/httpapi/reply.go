package httpapi

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"storefront.internal/shared/fault"
	"storefront.internal/shared/problem"
	"storefront.internal/shared/rfc3339"
)

// reply is an answer before it is written. Answers of this surface hold secrets and buyer data, so none may
// be cached.
type reply struct {
	status      int
	contentType string
	body        []byte // nil: no body
	etag        string // "": none
	digest      string // Content-Digest; "": none
}

// jsonReply encodes a body. It cannot fail for the types of this package.
func jsonReply(status int, v any) (reply, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return reply{}, err
	}
	return reply{status: status, contentType: "application/json",
		body: bytes.TrimSuffix(out.Bytes(), []byte("\n"))}, nil
}

// problem builds the answer for an error and records it in the event.
func (a *API) problem(h http.Header, ev *event, err error) reply {
	status, body := a.cfg.Problems.Build(err, ev.requestID)
	a.recordFailure(h, ev, fault.From(err), err)
	return reply{status: status, contentType: problem.ContentType, body: body}
}

// recordFailure records an error in the event and sets Retry-After.
func (a *API) recordFailure(h http.Header, ev *event, f *fault.Error, err error) {
	ev.code = string(f.Code)
	if entry, ok := a.entries[f.Code]; !ok || entry.Status >= http.StatusInternalServerError {
		ev.err = err
	}
	if f.RetryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(int64((f.RetryAfter+time.Second-1)/time.Second), 10))
	}
}

// write returns the bytes written. A client that went away is no error.
func (r reply) write(w http.ResponseWriter) int {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	if r.etag != "" {
		h.Set("ETag", r.etag)
	}
	if r.digest != "" {
		h.Set("Content-Digest", r.digest)
	}
	if r.body != nil {
		h.Set("Content-Type", r.contentType)
		h.Set("Content-Length", strconv.Itoa(len(r.body)))
	}
	w.WriteHeader(r.status)
	n, _ := w.Write(r.body)
	return n
}

// timestamp is a time in an answer: UTC, to the microsecond, with Z.
type timestamp time.Time

// MarshalJSON implements json.Marshaler.
func (t timestamp) MarshalJSON() ([]byte, error) {
	return appendTime(nil, time.Time(t)), nil
}

func appendTime(dst []byte, t time.Time) []byte {
	return append(rfc3339.Append(append(dst, '"'), t), '"')
}

// optional returns nil for the zero time.
func optional(t time.Time) *timestamp {
	if t.IsZero() {
		return nil
	}
	i := timestamp(t)
	return &i
}
