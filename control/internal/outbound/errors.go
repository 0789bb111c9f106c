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

// Reason says why there is no response. Reasons are never renamed: the state of a run shows them and they
// label metrics.
type Reason string

// The closed set of reasons.
const (
	AddressForbidden Reason = "address_forbidden" // the URL or its address may not be called
	InvalidRequest   Reason = "invalid_request"   // the request cannot be sent
	NameNotResolved  Reason = "name_not_resolved"
	Unreachable      Reason = "unreachable"
	BadCertificate   Reason = "certificate"
	TimedOut         Reason = "timeout"
	Redirected       Reason = "redirect"
	TooLarge         Reason = "too_large"       // the response, or what it decompresses to
	BadEncoding      Reason = "content_coding"  // not gzip, or broken
	Truncated        Reason = "truncated"       // the response ended early
	BadContentRange  Reason = "content_range"   // another part of the body than requested
	Disconnected     Reason = "disconnected"    // the connection broke, or the server does not speak HTTP
	Cancelled        Reason = "cancelled"       // by the caller
	ShopThrottled    Reason = "store_throttled" // rate limiter: the shop's rate limit is reached
	ShopBusy         Reason = "store_busy"      // rate limiter: too many calls of the shop are in flight
	ShopHangs        Reason = "store_hangs"     // rate limiter: the latest calls of the shop timed out
	unknownReason    Reason = "unknown"
)

// Error is a request without a response. Its text is the reason; it holds nothing of the request and the
// response.
type Error struct {
	Reason     Reason
	RetryAfter time.Duration // of the rate limiter; 0: none
	Err        error         // context.Canceled or context.DeadlineExceeded, for errors.Is; else nil
}

// Error implements error.
func (e *Error) Error() string { return "outbound: " + string(e.Reason) }

// Unwrap returns the context's error, if it was one.
func (e *Error) Unwrap() error { return e.Err }

// failure turns an error of net/http into an *Error, which says nothing of the request. ctx is the caller's,
// so that its cancellation is not taken for a fault of the response.
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
		return &Error{Reason: NameNotResolved}
	case errors.As(err, &verify), errors.As(err, &alert), errors.As(err, &record):
		return &Error{Reason: BadCertificate}
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
