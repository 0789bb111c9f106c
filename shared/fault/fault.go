// Package fault owns the one error type that crosses packages: a code that clients see, a detail that is safe
// to show, and a cause that is only logged. Adapters translate the errors of their drivers into faults.
// Package problem gives each code its HTTP status.
package fault

import (
	"errors"
	"time"
)

// Code names a kind of failure. Clients and metric labels use the codes, so they are never renamed.
type Code string

// The codes.
const (
	InvalidRequest                Code = "invalid_request"
	Unauthorized                  Code = "unauthorized"
	ForbiddenConnection           Code = "forbidden_connection"
	ForbiddenScope                Code = "forbidden_scope"
	NotFound                      Code = "not_found"
	MethodNotAllowed              Code = "method_not_allowed"
	PayloadTooLarge               Code = "payload_too_large"
	SignalBatchLimitExceeded      Code = "signal_batch_limit_exceeded"
	ObservationBatchLimitExceeded Code = "observation_batch_limit_exceeded"
	RateLimited                   Code = "rate_limited"
	InternalError                 Code = "internal_error"
	SignalsUnavailable            Code = "signals_unavailable"
	ServiceUnavailable            Code = "service_unavailable"
	BootstrapRunning              Code = "bootstrap_running"
	StoreConnected                Code = "store_connected"
	NotBlocked                    Code = "not_blocked"
	AlreadyReplayed               Code = "already_replayed"
	PrincipalOff                  Code = "principal_off"
	UnknownScope                  Code = "unknown_scope"
	UnknownResource               Code = "unknown_resource"
	UnknownProvider               Code = "unknown_provider"
)

// Field is one error in a request body, with a JSON Pointer (RFC 6901) to its place.
type Field struct {
	Code    string `json:"code"`
	Detail  string `json:"detail"`
	Pointer string `json:"pointer"`
}

// Error is a failure that a client may see, with its cause for the log.
type Error struct {
	Code       Code
	Detail     string         // shown to the client; never a value of the request, never a secret
	Fields     []Field        // of an invalid_request
	Extra      map[string]any // further members of the problem body
	RetryAfter time.Duration  // 0: none
	Err        error          // the cause: logged, never shown
}

// New returns a fault without a cause.
func New(code Code, detail string) *Error { return &Error{Code: code, Detail: detail} }

// Invalid returns an invalid_request with one error of the body.
func Invalid(pointer, code, detail string) *Error {
	return &Error{Code: InvalidRequest, Detail: detail,
		Fields: []Field{{Code: code, Detail: detail, Pointer: pointer}}}
}

// Wrap returns a fault with its cause.
func Wrap(code Code, detail string, err error) *Error {
	return &Error{Code: code, Detail: detail, Err: err}
}

// Error returns the code, the detail and the cause, for logs.
func (e *Error) Error() string {
	s := string(e.Code)
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// From returns the fault in err's chain, or else an internal_error whose text is only logged.
func From(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Code: InternalError, Err: err}
}

// Is reports whether err is a fault of the code.
func Is(err error, code Code) bool {
	if err == nil { // usually, and before errors.As takes memory for e
		return false
	}
	var e *Error
	return errors.As(err, &e) && e.Code == code
}
