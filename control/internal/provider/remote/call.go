package remote

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"storefront.internal/control/internal/outbound"
	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/provider/payload"
	"storefront.internal/shared/backoff"
)

// API is how the shops of one provider are called.
type API struct {
	HTTP        *outbound.Client
	RateLimiter *outbound.RateLimiter

	// Feedback reads what a response says about the shop's limits; nil when responses never do.
	Feedback func(*outbound.Response) outbound.Feedback
}

// longestPause bounds what a response may ask for.
const longestPause = 24 * time.Hour

// Read decodes a response. It runs while the response is reserved in the budget of package outbound, so it
// waits for nothing.
type Read func(*outbound.Response) error

// Do makes one call for a shop and passes a response of status 2xx to read, unless that is nil. The response
// is returned beside an error too, so that an adapter can read the body of an error. Every status outside 2xx
// is an error: 404 is provider.ErrNotFound, and the adapter decides whether it is about the entity.
func (a *API) Do(
	ctx context.Context, s provider.Shop, cost float64, r outbound.Request, read Read,
) (*outbound.Response, error) {
	leave, err := a.RateLimiter.Acquire(ctx, limiterKey(s), cost)
	if err != nil {
		return nil, TransportError(err)
	}
	var report outbound.Feedback
	defer func() { leave(report) }()
	response, err := a.HTTP.Do(ctx, r)
	if err != nil {
		if timedOut(err) && ctx.Err() == nil {
			report.Outcome = outbound.NoAnswer
		}
		return nil, TransportError(err)
	}
	defer response.Release()
	if a.Feedback != nil {
		report = a.Feedback(response)
	}
	report.Outcome = outbound.Answered
	err = statusError(response)
	if after, ok := provider.RetryAfter(err); ok && after > 0 {
		report.Pause = max(report.Pause, after)
	}
	if err == nil && read != nil {
		err = read(response)
	}
	return response, err
}

// timedOut reports whether the request's own time ran out.
func timedOut(err error) bool {
	var e *outbound.Error
	return errors.As(err, &e) && e.Reason == outbound.TimedOut
}

func limiterKey(s provider.Shop) string {
	return cmp.Or(string(s.ConnectionID), s.ExternalStoreID)
}

// Request is a call whose request and response are JSON.
type Request struct {
	Method, Path string
	Query        url.Values
	Send         any   // the body, nil for none
	MaxBody      int64 // of the response
	Read         Read  // of a response of status 2xx, nil when it does not matter
}

// At returns the request to the API at an address.
func (r *Request) At(root string) (outbound.Request, error) {
	out := outbound.Request{Method: r.Method, URL: root + r.Path, Header: http.Header{}, MaxBody: r.MaxBody}
	if len(r.Query) > 0 {
		out.URL += "?" + r.Query.Encode()
	}
	out.Header.Set("User-Agent", "storefront")
	out.Header.Set("Accept", "application/json")
	if r.Send != nil {
		body, err := json.Marshal(r.Send)
		if err != nil {
			return out, &provider.RequestRejected{Reason: provider.ReasonInternal}
		}
		out.Body = body
		out.Header.Set("Content-Type", "application/json")
	}
	return out, nil
}

// TransportError turns an error of package outbound into one of package provider.
func TransportError(err error) error {
	var e *outbound.Error
	if !errors.As(err, &e) {
		return &provider.Temporary{Reason: provider.ReasonInternal}
	}
	switch e.Reason {
	case outbound.ShopThrottled, outbound.ShopBusy:
		return &provider.Throttled{RetryAfter: e.RetryAfter}
	case outbound.ShopHangs:
		return &provider.Temporary{Reason: provider.Reason(e.Reason), RetryAfter: e.RetryAfter}
	case outbound.AddressForbidden, outbound.InvalidRequest:
		return &provider.RequestRejected{Reason: provider.Reason(e.Reason)}
	default:
		return &provider.Temporary{Reason: provider.Reason(e.Reason), Err: e.Err}
	}
}

// statusError returns the error of a response's status, nil for 2xx.
func statusError(a *outbound.Response) error {
	after := backoff.RetryAfter(a.Header.Get("Retry-After"), time.Now(), longestPause)
	switch code := a.Status; {
	case code >= 200 && code < 300:
		return nil
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		return &provider.CredentialRefused{Status: code}
	case code == http.StatusPaymentRequired:
		return &provider.ShopSuspended{Status: code}
	case code == http.StatusNotFound:
		return provider.ErrNotFound
	case code == http.StatusTooManyRequests:
		if after == 0 {
			after = time.Second
		}
		return &provider.Throttled{RetryAfter: after}
	case code == http.StatusRequestTimeout, code == http.StatusTooEarly, code >= 500, code < 200:
		return &provider.Temporary{Reason: provider.ReasonServerError, Status: code, RetryAfter: after}
	default:
		return &provider.RequestRejected{Status: code, Reason: provider.ReasonRequestRejected}
	}
}

// UnexpectedNotFound turns a 404 that says nothing about an entity into a temporary error: it must not delete
// anything.
func UnexpectedNotFound(err error) error {
	if errors.Is(err, provider.ErrNotFound) {
		return &provider.Temporary{Reason: provider.ReasonContentType, Status: http.StatusNotFound}
	}
	return err
}

// IsJSON reports whether a response says that its body is JSON.
func IsJSON(a *outbound.Response) bool {
	kind, _, err := mime.ParseMediaType(a.Header.Get("Content-Type"))
	return err == nil && (kind == "application/json" || strings.HasSuffix(kind, "+json"))
}

// Decode reads the body of a response. A body that is not JSON is a temporary error, and so is one with too
// many values, since a smaller page may have less; JSON of another shape is malformed.
func Decode(a *outbound.Response, into any) error {
	if err := checkType(a); err != nil {
		return err
	}
	return DecodeError(payload.Decode(a.Body, into))
}

// Into returns a Read that decodes into a value.
func Into(into any) Read {
	return func(a *outbound.Response) error { return Decode(a, into) }
}

// Entity checks that a body is one JSON value that may be decoded. It is a Read.
func Entity(a *outbound.Response) error {
	if err := checkType(a); err != nil {
		return err
	}
	return DecodeError(payload.Check(a.Body))
}

// Elements reads a page of at most that many entities, each as it came. A page with more elements than asked
// for is malformed.
func Elements(a *outbound.Response, most int) ([]json.RawMessage, error) {
	if err := checkType(a); err != nil {
		return nil, err
	}
	elements, err := payload.Elements(a.Body, most)
	return elements, DecodeError(err)
}

func checkType(a *outbound.Response) error {
	if !IsJSON(a) {
		return &provider.Temporary{Reason: provider.ReasonContentType, Status: a.Status}
	}
	return nil
}

// DecodeError turns an error of package payload into one of package provider.
func DecodeError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, payload.ErrJSON):
		return &provider.Temporary{Reason: provider.ReasonInvalidJSON}
	case errors.Is(err, payload.ErrTooLarge):
		return &provider.Temporary{Reason: provider.Reason(outbound.TooLarge)}
	default:
		return &provider.Malformed{Reason: err.Error()}
	}
}
