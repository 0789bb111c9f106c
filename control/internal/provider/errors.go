package provider

import (
	"context"
	"errors"
	"strconv"
	"time"
)

// Reason is a word of a closed set that a run's state shows and that labels metrics.
type Reason string

// The reasons of this package; those of a call without an answer are package outbound's.
const (
	ReasonThrottled   Reason = "throttled"
	ReasonRefused     Reason = "credential_refused"
	ReasonPaused      Reason = "store_suspended"
	ReasonGone        Reason = "gone"
	ReasonMalformed   Reason = "malformed"
	ReasonRejected    Reason = "request_rejected"
	ReasonServerError Reason = "server_error"
	ReasonContentType Reason = "content_type" // a page of HTML, say
	ReasonInvalidJSON Reason = "invalid_json"
	ReasonPaging      Reason = "paging"      // a listing that contradicts itself
	ReasonBulkFailed  Reason = "bulk_failed" // the provider gave up an export
	ReasonCancelled   Reason = "cancelled"
	ReasonInternal    Reason = "internal"
)

// ErrGone is a provider's "not found" where an entity was asked for. Fetch answers Gone instead.
var ErrGone = errors.New("provider: gone")

// Throttled means that the store's calls are used up.
type Throttled struct{ RetryAfter time.Duration }

// Refused means that the credential opens nothing any more (401, 403): revoked, uninstalled, or without the scope.
type Refused struct{ Status int }

// Paused means that the shop or the app is suspended at the provider (402): nothing is to be called until it resumes.
type Paused struct{ Status int }

// Temporary means that nothing was learnt and another attempt may succeed.
type Temporary struct {
	Reason     Reason
	Status     int           // 0: there was no answer
	RetryAfter time.Duration // 0: none named
	Err        error         // a context's error, or nil
}

// Malformed means that the provider has the entity and it is none by our rules. Reason names rule and place, never a value.
type Malformed struct{ Reason string }

// Rejected means that the provider does not take this request; another attempt of the same one gains nothing.
type Rejected struct {
	Status int // 0: it was not sent
	Reason Reason
}

func (e *Throttled) Error() string { return "provider: throttled" }
func (e *Refused) Error() string   { return "provider: credential refused" + status(e.Status) }
func (e *Paused) Error() string    { return "provider: store suspended" + status(e.Status) }
func (e *Temporary) Error() string { return "provider: " + string(e.Reason) + status(e.Status) }
func (e *Malformed) Error() string { return "provider: malformed: " + e.Reason }
func (e *Rejected) Error() string {
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

// Retry says whether another attempt may succeed, and how soon at the earliest (0: the caller's own back-off). What is
// refused or paused may too, but only after the shop did something; so may what is malformed, once it changes.
func Retry(err error) (after time.Duration, worth bool) {
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

// ReasonOf returns the word for an error.
func ReasonOf(err error) Reason {
	var (
		throttled *Throttled
		refused   *Refused
		paused    *Paused
		temporary *Temporary
		malformed *Malformed
		rejected  *Rejected
	)
	switch {
	case err == nil:
		return ""
	case errors.Is(err, ErrGone):
		return ReasonGone
	case errors.As(err, &throttled):
		return ReasonThrottled
	case errors.As(err, &refused):
		return ReasonRefused
	case errors.As(err, &paused):
		return ReasonPaused
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
