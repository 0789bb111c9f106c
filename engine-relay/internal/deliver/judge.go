package deliver

import (
	"slices"
	"strconv"

	"storefront.internal/shared/deliveries"
)

// verdict is what a reply means for the deliveries of its request.
type verdict uint8

const (
	each      verdict = iota + 1 // Results tell of each
	accepted                     // all arrived
	refused                      // 401: the credential
	malformed                    // one of them is at fault: split, and dead once alone
	retry                        // later
	doubtful                     // later, and it may have arrived
)

// judge reads contract, section 4 "Outcomes of a delivery".
func judge(kind deliveries.Kind, r Reply) verdict {
	switch r.Sent {
	case NotSent:
		return retry
	case Unanswered:
		return doubtful
	}
	switch r.Status {
	case 200:
		if kind == deliveries.Interaction && slices.ContainsFunc(r.Results, told) {
			return each
		}
		return doubtful // an answer that tells of none is none
	case 202:
		if kind == deliveries.Envelope {
			return accepted
		}
		return doubtful
	case 401:
		return refused
	case 400, 409, 410, 413, 422:
		return malformed
	}
	if r.Status > 200 && r.Status < 300 {
		return doubtful
	}
	return retry
}

func told(r Result) bool { return r.Status != Untold }

// isolates reports whether a failure can be the doing of a single delivery, so that a second one sends it aside.
// What the whole engine says (a refused connection, a redirect, "slow down") never does.
func isolates(v verdict, r Reply) bool {
	return v == doubtful || v == each || v == retry && r.Sent == Answered && r.Status >= 500
}

// alive reports whether the reply shows an engine that works, for the breaker.
func alive(v verdict) bool { return v == each || v == accepted || v == malformed || v == refused }

// reason names a failure for the list of the dead and the metrics' readers.
func reason(v verdict, r Reply) string {
	switch {
	case r.Sent == NotSent:
		return "not_connected"
	case v == doubtful || v == each:
		return "no_answer"
	default:
		return "http_" + strconv.Itoa(r.Status)
	}
}
