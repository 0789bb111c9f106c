// Package problem owns how a client sees a failure: the table from codes to status, slug and title, and the
// bytes of an application/problem+json body. Causes are not shown; a 500 has no detail.
package problem

import (
	"encoding/json"
	"strings"

	"storefront.internal/shared/fault"
)

// ContentType is the media type of a problem body (RFC 9457).
const ContentType = "application/problem+json"

// Entry is a row of the table.
type Entry struct {
	Code   fault.Code
	Status int
	Title  string
}

// Slug is the last part of the problem's type: the code with hyphens.
func (e Entry) Slug() string { return strings.ReplaceAll(string(e.Code), "_", "-") }

// Entries returns all problems, by status.
func Entries() []Entry {
	return []Entry{
		{fault.InvalidRequest, 400, "Invalid request"},
		{fault.Unauthorized, 401, "Authentication required"},
		{fault.ForbiddenConnection, 403, "Connection is not accessible"},
		{fault.ForbiddenScope, 403, "Key is missing the required scope"},
		{fault.NotFound, 404, "Resource not found"},
		{fault.MethodNotAllowed, 405, "Method not allowed"},
		{fault.BootstrapRunning, 409, "A bootstrap is running"},
		{fault.StoreConnected, 409, "Store is already connected"},
		{fault.NotBlocked, 409, "Delivery is not blocked"},
		{fault.AlreadyReplayed, 409, "Record is already replayed"},
		{fault.PrincipalOff, 409, "Principal is switched off"},
		{fault.PayloadTooLarge, 413, "Payload too large"},
		{fault.ObservationBatchLimitExceeded, 413, "Observation batch limit exceeded"},
		{fault.SignalBatchLimitExceeded, 422, "Signal batch limit exceeded"},
		{fault.UnknownScope, 422, "Unknown scope"},
		{fault.UnknownResource, 422, "Unknown resource"},
		{fault.UnknownProvider, 422, "Unknown provider"},
		{fault.RateLimited, 429, "Too many requests"},
		{fault.InternalError, 500, "Internal server error"},
		{fault.SignalsUnavailable, 503, "Signals cannot be recorded right now"},
		{fault.ServiceUnavailable, 503, "Service unavailable"},
	}
}

// Builder builds the problem bodies of one deployment.
type Builder struct {
	errorsBase string
	entries    map[fault.Code]Entry
}

// New returns a builder. errorsBase is the prefix of a problem's type and ends with a slash.
func New(errorsBase string) *Builder {
	b := &Builder{errorsBase: errorsBase, entries: make(map[fault.Code]Entry)}
	for _, e := range Entries() {
		b.entries[e.Code] = e
	}
	return b
}

// body fixes the order of the members.
type body struct {
	Type      string        `json:"type"`
	Title     string        `json:"title"`
	Status    int           `json:"status"`
	Detail    string        `json:"detail"`
	Code      fault.Code    `json:"code"`
	RequestID string        `json:"request_id"`
	Errors    []fault.Field `json:"errors,omitzero"`
}

// Build returns the status and the body for err. An error that is not a fault, or has an unknown code, is an
// internal_error without a detail.
func (b *Builder) Build(err error, requestID string) (status int, problem []byte) {
	return b.BuildAs(0, err, requestID)
}

// BuildAs is Build with a more exact status: a request whose header is too large is an invalid_request with
// 431. Status 0 means the status of the code.
func (b *Builder) BuildAs(exact int, err error, requestID string) (status int, problem []byte) {
	f := fault.From(err)
	e, ok := b.entries[f.Code]
	if !ok || e.Code == fault.InternalError {
		e, f = b.entries[fault.InternalError], &fault.Error{}
	}
	if exact != 0 {
		e.Status = exact
	}
	out := body{Type: b.errorsBase + e.Slug(), Title: e.Title, Status: e.Status, Detail: f.Detail,
		Code:      e.Code,
		RequestID: requestID, Errors: f.Fields}
	if out.Detail == "" {
		out.Detail = e.Title + "."
	}
	if e.Code == fault.InvalidRequest && out.Errors == nil {
		out.Errors = []fault.Field{}
	}
	return e.Status, appendExtra(marshal(out), f.Extra)
}

// marshal does not fail: neither the types of this package nor the Extra of a fault contain what JSON cannot
// encode.
func marshal(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic("problem: " + err.Error())
	}
	return raw
}

func appendExtra(dst []byte, extra map[string]any) []byte {
	if len(extra) == 0 {
		return dst
	}
	dst[len(dst)-1] = ','
	return append(dst, marshal(extra)[1:]...)
}
