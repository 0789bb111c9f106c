package provider

import (
	"context"
	"errors"
	"strconv"
	"time"
)

// Reason is a word of a closed set that the state of a run shows and that labels metrics.
type Reason string

// The reasons of this package. Those of a call without a response are package outbound's.
const (
	ReasonThrottled         Reason = "throttled"
	ReasonCredentialRefused Reason = "credential_refused"
	ReasonShopSuspended     Reason = "store_suspended"
	ReasonGone              Reason = "gone"
	ReasonMalformed         Reason = "malformed"
	ReasonRequestRejected   Reason = "request_rejected"
	ReasonServerError       Reason = "server_error"
	ReasonContentType       Reason = "content_type" // a page of HTML, for example
	ReasonInvalidJSON       Reason = "invalid_json"
	ReasonPaging            Reason = "paging"      // a listing that contradicts itself
	ReasonBulkFailed        Reason = "bulk_failed" // an export failed at the provider
	ReasonCancelled         Reason = "cancelled"
	ReasonInternal          Reason = "internal"
)

// ErrNotFound is a provider's "not found" for an entity. Fetch returns Gone in its place.
var ErrNotFound = errors.New("provider: gone")

// Throttled means that the shop's rate limit is reached.
type Throttled struct{ RetryAfter time.Duration }

// CredentialRefused means that the credential is not valid any more (401, 403): it was revoked, the app was
// uninstalled, or a scope is missing.
type CredentialRefused struct{ Status int }

// ShopSuspended means that the provider suspended the shop or the app (402). There are no calls until it
// resumes.
type ShopSuspended struct{ Status int }

// Temporary means that the outcome is unknown and another attempt may succeed.
type Temporary struct {
	Reason     Reason
	Status     int           // 0: there was no response
	RetryAfter time.Duration // 0: none named
	Err        error         // a context's error, or nil
}

// Malformed means that the entity exists and breaks a rule of the catalog. Reason names the rule and the
// member, never a value.
type Malformed struct{ Reason string }

// RequestRejected means that the provider does not accept this request. Another attempt would fail too.
type RequestRejected struct {
	Status int // 0: it was not sent
	Reason Reason
}

func (e *Throttled) Error() string         { return "provider: throttled" }
func (e *CredentialRefused) Error() string { return "provider: credential refused" + status(e.Status) }
func (e *ShopSuspended) Error() string     { return "provider: store suspended" + status(e.Status) }
func (e *Temporary) Error() string         { return "provider: " + string(e.Reason) + status(e.Status) }
func (e *Malformed) Error() string         { return "provider: malformed: " + e.Reason }
func (e *RequestRejected) Error() string {
	return "provider: rejected: " + string(e.Reason) + status(e.Status)
}

// Unwrap returns the context's error.
func (e *Temporary) Unwrap() error { return e.Err }

func status(code int) string {
	if code == 0 {
		return ""
	}
	return " (status " + strconv.Itoa(code) + ")"
}

// RetryAfter says whether another attempt may succeed, and how soon at the earliest (0: the caller's own
// back-off). After a refused credential, a suspended shop or a malformed entity it may succeed only once the
// shop changed something, so those are not retryable.
func RetryAfter(err error) (after time.Duration, retryable bool) {
	var (
		throttled *Throttled
		temporary *Temporary
	)
	switch {
	case errors.As(err, &throttled):
		return throttled.RetryAfter, true
	case errors.As(err, &temporary):
		return temporary.RetryAfter, true
	default:
		return 0, errors.Is(err, context.DeadlineExceeded)
	}
}

// ReasonOf returns the reason of an error.
func ReasonOf(err error) Reason {
	var (
		throttled *Throttled
		refused   *CredentialRefused
		paused    *ShopSuspended
		temporary *Temporary
		malformed *Malformed
		rejected  *RequestRejected
	)
	switch {
	case err == nil:
		return ""
	case errors.Is(err, ErrNotFound):
		return ReasonGone
	case errors.As(err, &throttled):
		return ReasonThrottled
	case errors.As(err, &refused):
		return ReasonCredentialRefused
	case errors.As(err, &paused):
		return ReasonShopSuspended
	case errors.As(err, &malformed):
		return ReasonMalformed
	case errors.As(err, &rejected):
		return rejected.Reason
	case errors.As(err, &temporary):
		return temporary.Reason
	case errors.Is(err, context.Canceled):
		return ReasonCancelled
	default:
		return ReasonInternal
	}
}
