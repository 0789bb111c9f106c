package trail

import "time"

// Row is what is known about one signal.
type Row struct {
	Number   int       `json:"number"` // in the order in which the signals became known
	SignalID string    `json:"signal_id"`
	Type     string    `json:"type"`
	ItemID   string    `json:"item_id,omitempty"`
	Order    string    `json:"order,omitempty"`
	MintedAt time.Time `json:"minted_at"`
	// Stored and Removed are what the page's storage did with the signal.
	Stored   bool      `json:"stored"`
	Removed  bool      `json:"removed"`
	Attempts []Attempt `json:"attempts"`
	// Created and Exists are how often the engine gave that result.
	Created   int        `json:"created"`
	Exists    int        `json:"exists"`
	CreatedAt *time.Time `json:"created_at,omitempty"`
	Line      *Line      `json:"line,omitempty"`

	version int // of the trail when the row changed last
}

// Attempt is one request that carried the signal.
type Attempt struct {
	At   time.Time `json:"at"`
	Form string    `json:"form"` // "text/plain", "beacon", "JSON", "sent twice"
	MS   int64     `json:"ms"`
	// Outcome is the signal's result (accepted, duplicate, rejected), the status of an answer without
	// results, "answer cut", or "no answer".
	Outcome string `json:"outcome"`
	Reason  string `json:"reason,omitempty"`
}

// Line is the cart line that the engine received with the signal.
type Line struct {
	Quantity int `json:"quantity"`
	Revision int `json:"revision"`
}

// Refused reports whether the service will never count the signal.
func (r *Row) Refused() bool {
	return len(r.Attempts) > 0 && r.Attempts[len(r.Attempts)-1].Outcome == "rejected"
}

// Count says whether as many signals are at the engine as were minted.
type Count struct {
	Minted  int `json:"minted"`
	Counted int `json:"counted"`
	Doubled int `json:"doubled"` // created more than once; must stay 0
	Refused int `json:"refused"`
}
