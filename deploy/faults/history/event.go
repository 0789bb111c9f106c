// Package history is the record of a fault run: the begin and end of each client call, and the injected
// faults, as JSON Lines on one monotonic clock. Its form is that of Jepsen histories.
package history

import (
	"crypto/sha256"
	"encoding/hex"
)

// Kind is the begin of a call or the outcome at its end.
type Kind string

// Invoke is written before the first byte is sent. OK is a 2xx with a complete body. Fail is a call certainly
// without effect: a 4xx or a refused connection. Info is a call with an unknown effect: a timeout, a reset, a
// 5xx.
const (
	Invoke Kind = "invoke"
	OK     Kind = "ok"
	Fail   Kind = "fail"
	Info   Kind = "info"
)

// Op is the operation of a call.
type Op string

// The operations.
const (
	Signals   Op = "signals"    // record signals
	Recommend Op = "recommend"  // get a recommendation
	Item      Op = "item"       // get an item
	Observe   Op = "observe"    // deliver observations
	Webhook   Op = "webhook"    // deliver a webhook
	KeyIssue  Op = "key_issue"  // issue a key
	KeyRevoke Op = "key_revoke" // revoke a key
	Erase     Op = "erase"      // erase a visitor
	Probe     Op = "probe"      // abusive calls, which may have no effect
)

// Event is the begin or the end of a call. Its members depend on the operation.
type Event struct {
	At         int64  `json:"at"`   // nanoseconds since the run's start
	Call       uint64 `json:"call"` // the same for begin and end
	Kind       Kind   `json:"kind"`
	Op         Op     `json:"op"`
	Client     int    `json:"client"`
	Edge       string `json:"edge,omitempty"` // the called edge or control
	Connection string `json:"connection,omitempty"`
	Key        string `json:"key,omitempty"` // api_key_id
	// Steady calls are made at a fixed rate, whatever their answers are, and never again. What must go on
	// while a dependency is down is measured by them.
	Steady bool `json:"steady,omitempty"`

	Signals            []SentSignal        `json:"signals,omitempty"`      // at the begin of Signals
	Results            []SignalResult      `json:"results,omitempty"`      // at the end of Signals
	Observations       []SentObservation   `json:"observations,omitempty"` // at the begin of Observe
	ObservationResults []ObservationResult `json:"outcomes,omitempty"`     // at the end of Observe

	Status    int    `json:"status,omitempty"`
	Code      string `json:"code,omitempty"`
	RequestID string `json:"request_id,omitempty"`
	Error     string `json:"error,omitempty"`

	Item     string   `json:"item,omitempty"`     // item_id of Item
	Revision int64    `json:"revision,omitempty"` // refresh_revision at the end of Item
	Decision string   `json:"decision,omitempty"` // decision_id at the end of Recommend
	Items    []string `json:"items,omitempty"`    // items at the end of Recommend, in order
	External string   `json:"external,omitempty"` // product or order id of Webhook
	Visitor  string   `json:"visitor,omitempty"`  // of Erase, and the buyer of Redacts
	Redacts  []string `json:"redacts,omitempty"`  // orders whose buyers a Webhook asks to redact
}

// SentSignal is a signal as the client sent it.
type SentSignal struct {
	ID              string `json:"id"`
	Type            string `json:"type,omitempty"`
	Decision        string `json:"decision,omitempty"`
	Item            string `json:"item,omitempty"`
	Variant         string `json:"variant,omitempty"`
	Quantity        *int   `json:"quantity,omitempty"`
	OccurredAt      string `json:"occurred_at,omitempty"`
	Canary          string `json:"canary,omitempty"`           // end of the visitor's id
	Visitor         string `json:"visitor,omitempty"`          // if it is erased later
	Malformed       bool   `json:"malformed,omitempty"`        // on purpose: it must be rejected
	VisitorErased   bool   `json:"visitor_erased,omitempty"`   // later: then its deliveries have no visitor
	ForeignDecision bool   `json:"foreign_decision,omitempty"` // unknown_decision is correct
}

// SignalResult is the result of one signal.
type SignalResult struct {
	Index  int    `json:"index"`
	ID     string `json:"signal_id,omitempty"`
	Status string `json:"status"`
	Reason string `json:"reason,omitempty"`
}

// SentObservation is an observation as the connector sent it.
type SentObservation struct {
	Entity    string `json:"entity"`
	External  string `json:"external_id"`
	Operation string `json:"operation,omitempty"` // upsert when empty
	Revision  int64  `json:"revision"`
	Raw       string `json:"raw,omitempty"` // SHA-256 in hex of the bytes of `raw`
}

// ObservationResult is the result of one observation.
type ObservationResult struct {
	Index       int    `json:"index"`
	Status      string `json:"status"`
	Observation string `json:"observation_id,omitempty"`
	EntityID    string `json:"entity_id,omitempty"`
	Reason      string `json:"reason,omitempty"`
}

// Fault is one injected fault, from its begin to the moment at which it was healed.
type Fault struct {
	At     int64  `json:"at"`
	Until  int64  `json:"until"`
	Kind   string `json:"fault"` // N1 … N16
	Detail string `json:"detail,omitempty"`

	// The others are set while nothing but one dependency is down.
	Case      string `json:"case,omitempty"`   // of package liveness
	Target    string `json:"target,omitempty"` // the process
	Cold      bool   `json:"cold,omitempty"`   // Redis lacked claims, so that recording needed PostgreSQL
	Recovered int64  `json:"recovered,omitempty"`
}

// Stall is a time in which the machine did not run the campaign itself.
type Stall struct {
	At    int64 `json:"at"`
	Until int64 `json:"stall_until"`
}

// History is a whole history.
type History struct {
	Events []Event
	Faults []Fault
	Stalls []Stall
}

// Canary returns the end of a signal's visitor id. With it, data of another connection or signal is
// recognized wherever it appears.
func Canary(connection, signal string) string {
	sum := sha256.Sum256([]byte(connection + "|" + signal))
	return hex.EncodeToString(sum[:12])
}
