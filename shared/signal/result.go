package signal

import "strconv"

// Status is the outcome of one element of a batch.
type Status string

// The closed set of outcomes.
const (
	Accepted  Status = "accepted"  // stored and queued for the engine
	Duplicate Status = "duplicate" // the id exists; no new work
	Rejected  Status = "rejected"  // not stored; Reason says why
)

// Reason says why an element was rejected: invalid_signal, unknown_decision, or missing_F, invalid_F,
// unexpected_F for a field F.
type Reason string

// The reasons without a field.
const (
	InvalidSignal   Reason = "invalid_signal"
	UnknownDecision Reason = "unknown_decision"
)

// Result is the outcome for one position of a batch.
type Result struct {
	Index       int
	SignalID    string // as sent
	HasSignalID bool   // false: the element had none, and the answer says null
	Status      Status
	Reason      Reason
}

// AppendResults appends the body of a 202: {"results":[…]}, one per position.
func AppendResults(dst []byte, results []Result) []byte {
	dst = append(dst, `{"results":[`...)
	for i := range results {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendResult(dst, &results[i])
	}
	return append(dst, `]}`...)
}

func appendResult(dst []byte, r *Result) []byte {
	dst = append(dst, `{"index":`...)
	dst = strconv.AppendInt(dst, int64(r.Index), 10)
	dst = append(dst, `,"signal_id":`...)
	if r.HasSignalID {
		dst = appendString(dst, r.SignalID)
	} else {
		dst = append(dst, "null"...)
	}
	dst = append(dst, `,"status":"`...)
	dst = append(dst, r.Status...)
	dst = append(dst, '"')
	if r.Reason != "" {
		dst = append(dst, `,"reason":"`...)
		dst = append(dst, r.Reason...)
		dst = append(dst, '"')
	}
	return append(dst, '}')
}
