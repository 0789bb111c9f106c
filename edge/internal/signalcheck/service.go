package signalcheck

import (
	"encoding/json"
	"fmt"

	"storefront.internal/edge/internal/signaljson"
	"storefront.internal/edge/internal/signalrules"
	"storefront.internal/shared/ident"
)

// Status is the verdict on one element.
type Status string

// The statuses. A valid signal would be answered `accepted` or `duplicate`.
const (
	Valid    Status = "valid"
	Rejected Status = "rejected"
)

// Result is the verdict on the element at Index.
type Result struct {
	Index    int     `json:"index"`
	SignalID *string `json:"signal_id"` // nil when the element has none
	Status   Status  `json:"status"`
	Reason   string  `json:"reason,omitempty"` // as recordStorefrontSignals answers it
	Errors   []Error `json:"errors,omitempty"`
}

// Error is a broken rule, or a field that would be discarded from a valid signal.
type Error struct {
	Code    string `json:"code"`
	Detail  string `json:"detail"`
	Pointer string `json:"pointer"` // RFC 6901, into the body
}

// Service checks batches. It is safe for concurrent use.
type Service struct{ rules *signalrules.Rules }

// New returns a Service.
func New(decisions signalrules.DecisionVerifier) *Service {
	return &Service{rules: signalrules.New(decisions)}
}

// Check returns the JSON of one result per position: {"results": [...]}. charge is called once with the
// number of signals. The error is a *fault.Error, invalid_request or signal_batch_limit_exceeded.
func (s *Service) Check(c ident.ConnectionID, body []byte, charge func(n int)) ([]byte, error) {
	var d signaljson.Decoder
	if bad := d.Decode(body); bad != nil {
		return nil, bad
	}
	charge(d.Count())
	v := s.rules.Validator(&d, c)
	results := make([]Result, d.Count())
	for i := range results {
		results[i] = check(&v, i, d.Element(i))
	}
	return json.Marshal(map[string][]Result{"results": results})
}

func check(v *signalrules.Validator, i int, e *signaljson.Element) Result {
	r := Result{Index: i, Status: Valid}
	if id, ok := v.SentID(e); ok {
		r.SignalID = &id
	}
	if reason := v.Validate(e, new(signalrules.Result)); reason != "" {
		r.Status, r.Reason = Rejected, string(reason)
	}
	for _, f := range v.Explain(e, new(signalrules.Result)) {
		pointer := fmt.Sprintf("/signals/%d", i)
		if f.Member != "" {
			pointer += "/" + f.Member
		}
		r.Errors = append(r.Errors, Error{Code: f.Code, Detail: f.Rule, Pointer: pointer})
	}
	return r
}
