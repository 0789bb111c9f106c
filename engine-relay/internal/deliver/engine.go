package deliver

import (
	"context"
	"time"

	"storefront.internal/shared/deliveries"
)

// Engine sends one request. It returns only when it knows which Transmission is true.
type Engine interface {
	// Send posts the bodies, 1 to 200 of them, as one request of the kind's call.
	Send(ctx context.Context, kind deliveries.Kind, bodies [][]byte) Reply
	// Credential is the digest of the bearer token that Send uses.
	Credential() deliveries.Credential
}

// Transmission says whether a request reached the engine. The zero value is the cautious one.
type Transmission uint8

const (
	// Unanswered means that the request may have arrived: there is no answer, or none that can be read.
	Unanswered Transmission = iota
	// NotSent means that no byte of the request left.
	NotSent
	// Answered means that the engine answered the request.
	Answered
)

// Reply is the outcome of a request.
type Reply struct {
	Transmission Transmission
	Status       int           // of Answered
	Results      []Result      // of a readable 200 to interactions: one per body, in order
	RetryAfter   time.Duration // 0 when the answer has none
	Err          error         // the reason, for the log; it never holds what the engine wrote
}

// acceptedItems is how many interactions have a result that says that the engine has them.
func (r Reply) acceptedItems() (n int) {
	for _, result := range r.Results {
		if result.Status == Created || result.Status == Exists {
			n++
		}
	}
	return n
}

// Result is the engine's answer to one interaction.
type Result struct {
	Status ResultStatus
	Reason string
}

// ResultStatus is the status of one interaction.
type ResultStatus uint8

// The statuses that the engine answers with. NoResult means that the answer has none for the interaction.
const (
	NoResult ResultStatus = iota
	Created
	Exists
	Rejected
)
