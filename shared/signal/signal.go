// Package signal owns the vocabulary of signals: what a shopper did with a served recommendation, the result
// of each element of a batch, and the versioned Kafka records that carry accepted signals and served
// Decisions from the edge to the relay.
package signal

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"time"

	"storefront.internal/shared/ident"
)

// Type says what the shopper did.
type Type string

// The closed set of types.
const (
	Impression     Type = "impression"
	Click          Type = "click"
	AddToCart      Type = "add_to_cart"
	RemoveFromCart Type = "remove_from_cart"
	UpdateQuantity Type = "update_quantity"
	Purchase       Type = "purchase"
	Dismiss        Type = "dismiss"
)

// Types returns the closed set.
func Types() []Type {
	return []Type{Impression, Click, AddToCart, RemoveFromCart, UpdateQuantity, Purchase, Dismiss}
}

// ParseType returns the type of that name.
func ParseType(name []byte) (Type, bool) {
	for _, t := range [...]Type{Impression, Click, AddToCart, RemoveFromCart, UpdateQuantity, Purchase,
		Dismiss} {
		if string(name) == string(t) {
			return t, true
		}
	}
	return "", false
}

// Cart reports whether signals of the type change a cart line.
func (t Type) Cart() bool { return t == AddToCart || t == RemoveFromCart || t == UpdateQuantity }

// Signal is one valid element of a batch.
type Signal struct {
	ID              ident.SignalID   `json:"signal_id"`
	Type            Type             `json:"type"`
	OccurredAt      time.Time        `json:"occurred_at"` // UTC, microseconds
	DecisionID      ident.DecisionID `json:"decision_id"`
	ItemID          ident.ItemID     `json:"item_id"`    // empty on impressions
	VariantID       ident.VariantID  `json:"variant_id"` // empty when absent
	Position        *int32           `json:"position"`
	Quantity        *int32           `json:"quantity"`
	OrderExternalID string           `json:"order_external_id"`
	Visitor         *Visitor         `json:"visitor"` // nil when absent or discarded
	Client          json.RawMessage  `json:"client"`  // the object as sent; nil when absent or discarded
}

// Visitor is the shopper as the storefront knows them; either member may be empty.
type Visitor struct {
	VisitorID ident.VisitorID `json:"visitor_id,omitempty"`
	SessionID ident.SessionID `json:"session_id,omitempty"`
}

// Audit is what is stored of a request, and never returned or delivered.
type Audit struct {
	IP             string `json:"ip"`
	UserAgent      string `json:"user_agent"`
	AcceptLanguage string `json:"accept_language"`
	Origin         string `json:"origin"`
	Referer        string `json:"referer"`
	Crawler        bool   `json:"crawler"` // by the User-Agent; its signals are stored and marked
}

// LedgerDigest is the key of a signal in claims and in the ledger: half of a SHA-256 over connection and
// signal id.
func LedgerDigest(c ident.ConnectionID, s ident.SignalID) [16]byte {
	var buf [2 + 2*(4+ident.MaxBody)]byte
	b := binary.BigEndian.AppendUint16(buf[:0], uint16(len(c)))
	b = append(b, c...)
	b = append(b, s...)
	sum := sha256.Sum256(b)
	return [16]byte(sum[:16])
}
