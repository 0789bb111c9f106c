package remote

import (
	"context"
	"errors"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"storefront.internal/control/internal/outbound"
	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/provider/payload"
)

// API is how the stores of one provider are called.
type API struct {
	HTTP *outbound.Client
	Gate *outbound.Gate

	// Report reads what an answer says about the store's budget; nil when the provider's answers never do.
	Report func(*outbound.Answer) outbound.Report
}

// longestPause bounds what an answer may ask for: a store that asks for a year is asked again tomorrow.
const longestPause = 24 * time.Hour

// Do makes one call for a store. The answer is there whenever the provider gave one, beside an error too, so that an
// adapter can look at the body of a refusal. Every status outside 2xx is an error: 404 is provider.ErrGone, which only the
// adapter can tell from a 404 that means something else.
func (a *API) Do(ctx context.Context, s provider.Store, cost float64, r outbound.Request) (*outbound.Answer, error) {
	leave, err := a.Gate.Enter(ctx, gateKey(s), cost)
	if err != nil {
		return nil, Failure(err)
	}
	var report outbound.Report
	defer func() { leave(report) }()
	answer, err := a.HTTP.Do(ctx, r)
	if err != nil {
		return nil, Failure(err)
	}
	if a.Report != nil {
		report = a.Report(answer)
	}
	err = Meaning(answer)
	if after, ok := provider.Retry(err); ok && after > 0 {
		report.Pause = max(report.Pause, after)
	}
	return answer, err
}

func gateKey(s provider.Store) string {
	if s.ConnectionID != "" {
		return string(s.ConnectionID)
	}
	return s.ExternalStoreID
}

// Failure turns an error of package outbound into one of package provider.
func Failure(err error) error {
	var e *outbound.Error
	if !errors.As(err, &e) {
		return &provider.Temporary{Reason: provider.ReasonInternal}
	}
	switch e.Reason {
	case outbound.Busy, outbound.ReadyTooLate:
		return &provider.Throttled{RetryAfter: e.RetryAfter}
	case outbound.Forbidden, outbound.InvalidCall:
		return &provider.Rejected{Reason: provider.Reason(e.Reason)}
	default:
		return &provider.Temporary{Reason: provider.Reason(e.Reason), Err: e.Err}
	}
}

// Meaning is what the status of an answer means.
func Meaning(a *outbound.Answer) error {
	after := RetryAfter(a.Header, time.Now())
	switch code := a.Status; {
	case code >= 200 && code < 300:
		return nil
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		return &provider.Refused{Status: code}
	case code == http.StatusPaymentRequired:
		return &provider.Paused{Status: code}
	case code == http.StatusNotFound:
		return provider.ErrGone
	case code == http.StatusTooManyRequests:
		if after == 0 {
			after = time.Second
		}
		return &provider.Throttled{RetryAfter: after}
	case code == http.StatusRequestTimeout, code == http.StatusTooEarly, code >= 500, code < 200:
		return &provider.Temporary{Reason: provider.ReasonServerError, Status: code, RetryAfter: after}
	default:
		return &provider.Rejected{Status: code, Reason: provider.ReasonRejected}
	}
}

// RetryAfter reads the header of that name: seconds or a date. 0 when there is none.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	text := strings.TrimSpace(h.Get("Retry-After"))
	if text == "" {
		return 0
	}
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		if !(seconds > 0) {
			return 0
		}
		return time.Duration(min(seconds, longestPause.Seconds()) * float64(time.Second))
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), longestPause)
}

// IsJSON reports whether an answer says that its body is JSON.
func IsJSON(a *outbound.Answer) bool {
	kind, _, err := mime.ParseMediaType(a.Header.Get("Content-Type"))
	return err == nil && (kind == "application/json" || strings.HasSuffix(kind, "+json"))
}

// Decode reads the body of an answer. What is no JSON is the provider's passing fault; JSON of another shape is malformed.
func Decode(a *outbound.Answer, into any) error {
	if !IsJSON(a) {
		return &provider.Temporary{Reason: provider.ReasonContentType, Status: a.Status}
	}
	return Shape(payload.Decode(a.Body, into))
}

// Shape turns an error of package payload into one of package provider.
func Shape(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, payload.ErrJSON):
		return &provider.Temporary{Reason: provider.ReasonInvalidJSON}
	default:
		return &provider.Malformed{Reason: err.Error()}
	}
}
