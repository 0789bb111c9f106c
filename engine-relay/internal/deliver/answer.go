package deliver

import (
	"context"
	"time"

	"storefront.internal/shared/deliveries"
)

// Engine sends one request. It never returns before it knows which of the three Sents is true.
type Engine interface {
	// Send posts the bodies, 1 to 200 of them, as one request of the kind's call.
	Send(ctx context.Context, kind deliveries.Kind, bodies [][]byte) Reply
	// Credential is the digest of the bearer token that Send uses.
	Credential() deliveries.Credential
}

// Sent is what is known of a request's way. Its zero value is the careful one.
type Sent uint8

const (
	// Unanswered means that it may have arrived, and there is no answer, or none that can be read.
	Unanswered Sent = iota
	// NotSent means that not a byte of it left.
	NotSent
	// Answered means that the engine answered it.
	Answered
)

// Reply is what became of a request.
type Reply struct {
	Sent       Sent
	Status     int           // of Answered
	Results    []Result      // of a readable 200 to interactions: one per body, in order
	RetryAfter time.Duration // 0 when the answer named none
	Err        error         // why, for the log; never what the engine wrote
}

// Result is what the engine said of one interaction.
type Result struct {
	Status ResultStatus
	Reason string
}

// ResultStatus is the status of one interaction. Its zero value says that the answer did not tell.
type ResultStatus uint8

// The statuses of contract, section 4.
const (
	Untold ResultStatus = iota
	Created
	Exists
	Rejected
)
