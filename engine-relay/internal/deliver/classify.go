package deliver

import (
	"slices"
	"strconv"

	"storefront.internal/shared/deliveries"
)

// replyClass is what a reply means for the deliveries of its request.
type replyClass uint8

const (
	perItem      replyClass = iota + 1 // Results has the outcome of each
	accepted                           // all arrived
	unauthorized                       // 401: the credential is refused
	malformed                          // one of them is at fault: split the batch; dead-letter a single one
	spared                             // a single one, malformed by its answer: retry it alone (refusalGuard)
	massRefused                        // the same, while the engine is at fault: send probes only
	retry                              // try again later
	maybeSent                          // try again later; it may have arrived
)

// classify implements the table of answers in engine.openapi.yaml.
func classify(kind deliveries.Kind, r Reply) replyClass {
	switch r.Transmission {
	case NotSent:
		return retry
	case Unanswered:
		return maybeSent
	}
	switch r.Status {
	case 200:
		if kind == deliveries.Interaction && slices.ContainsFunc(r.Results, hasStatus) {
			return perItem
		}
		return maybeSent // without a single result it counts as no answer
	case 202:
		if kind == deliveries.Envelope {
			return accepted
		}
		return maybeSent
	case 401:
		return unauthorized
	case 400, 409, 410, 413, 422:
		return malformed
	}
	if r.Status > 200 && r.Status < 300 {
		return maybeSent
	}
	return retry
}

func hasStatus(r Result) bool { return r.Status != NoResult }

// blameable reports whether a single delivery can have caused the failure; the second such failure moves it
// to the retry lane. A refused connection, a redirect or a 429 concerns the whole engine and never does.
func blameable(c replyClass, r Reply) bool {
	return c == maybeSent || c == perItem || c == retry && r.Transmission == Answered && r.Status >= 500
}

// engineResponded reports whether the reply shows a working engine, which closes the circuit breaker.
func engineResponded(c replyClass) bool {
	return c == perItem || c == accepted || c == malformed || c == spared || c == unauthorized
}

// reason is the text of a failure in the list of dead letters.
func reason(c replyClass, r Reply) string {
	switch {
	case r.Transmission == NotSent:
		return "not_connected"
	case c == maybeSent || c == perItem:
		return "no_answer"
	default:
		return "http_" + strconv.Itoa(r.Status)
	}
}
