package outbound

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/url"
	"time"
)

// Reason says why there is no answer. Reasons are never renamed: they are shown in a run's state and label metrics.
type Reason string

// The closed set of reasons.
const (
	Forbidden     Reason = "address_forbidden" // the URL or the address behind it is none that may be called
	InvalidCall   Reason = "invalid_request"   // the request itself cannot be sent
	Unresolved    Reason = "name_not_resolved"
	Unreachable   Reason = "unreachable"
	Untrusted     Reason = "certificate"
	TimedOut      Reason = "timeout"
	Redirected    Reason = "redirect"
	TooLarge      Reason = "too_large"       // the answer, or what it decompresses to
	BadEncoding   Reason = "content_coding"  // other than gzip, or broken
	Truncated     Reason = "truncated"       // the answer ended early
	BadPartial    Reason = "content_range"   // a part of the body that was not asked for
	Disconnected  Reason = "disconnected"    // the connection broke, or spoke no HTTP
	Cancelled     Reason = "cancelled"       // by the caller
	Busy          Reason = "store_throttled" // the gate: the store's calls are used up for now
	ReadyTooLate  Reason = "store_busy"      // the gate: too many calls of the store are under way
	unknownReason Reason = "unknown"
)

// Error is a request without an answer. Its text is the reason, nothing of the request and nothing of the answer.
type Error struct {
	Reason     Reason
	RetryAfter time.Duration // of the gate; 0: none
	Err        error         // context.Canceled or context.DeadlineExceeded, for errors.Is; else nil
}

// Error implements error.
func (e *Error) Error() string { return "outbound: " + string(e.Reason) }

// Unwrap returns the context's error, if it was one.
func (e *Error) Unwrap() error { return e.Err }

// failure turns an error of net/http into one that says nothing of the request. ctx is the caller's: what it ended was
// not the answer's fault.
func failure(ctx context.Context, err error) *Error {
	var own *Error
	if errors.As(err, &own) {
		return own
	}
	if cause := ctx.Err(); errors.Is(cause, context.Canceled) {
		return &Error{Reason: Cancelled, Err: cause}
	}
	var (
		timeout interface{ Timeout() bool }
		name    *net.DNSError
		verify  *tls.CertificateVerificationError
		alert   tls.AlertError
		record  tls.RecordHeaderError
		op      *net.OpError
		bad     *url.Error
	)
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return &Error{Reason: TimedOut, Err: context.DeadlineExceeded}
	case errors.As(err, &name):
		return &Error{Reason: Unresolved}
	case errors.As(err, &verify), errors.As(err, &alert), errors.As(err, &record):
		return &Error{Reason: Untrusted}
	case errors.As(err, &op) && op.Op == "dial":
		return &Error{Reason: Unreachable}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &Error{Reason: Truncated}
	case errors.As(err, &bad), errors.As(err, &op), errors.Is(err, io.EOF):
		return &Error{Reason: Disconnected}
	default:
		return &Error{Reason: unknownReason}
	}
}
