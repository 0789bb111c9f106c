// Package signal owns the vocabulary of signals: what a shopper did with a served recommendation (spec.md "Signal"),
// what the service answers for it, and the versioned records that carry accepted signals and served Decisions from
// the edge to the relay. It refuses to judge a request (the edge's intake does) and to store anything.
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

// Types returns the closed set, in the order of spec.md.
func Types() []Type {
	return []Type{Impression, Click, AddToCart, RemoveFromCart, UpdateQuantity, Purchase, Dismiss}
}

// ParseType returns the type of that name without a copy of the bytes.
func ParseType(name []byte) (Type, bool) {
	for _, t := range [...]Type{Impression, Click, AddToCart, RemoveFromCart, UpdateQuantity, Purchase, Dismiss} {
		if string(name) == string(t) {
			return t, true
		}
	}
	return "", false
}

// Cart reports whether signals of the type change a cart line.
func (t Type) Cart() bool { return t == AddToCart || t == RemoveFromCart || t == UpdateQuantity }

// Signal is one sound element of a storefront-signals batch.
type Signal struct {
	ID              ident.SignalID
	Type            Type
	OccurredAt      time.Time // UTC, microseconds
	DecisionID      ident.DecisionID
	ItemID          ident.ItemID    // empty on impressions
	VariantID       ident.VariantID // empty when absent
	Position        *int32
	Quantity        *int32
	OrderExternalID string
	Visitor         *Visitor        // nil when absent or discarded
	Client          json.RawMessage // the object as sent; nil when absent or discarded
}

// Visitor is the shopper as the storefront knows them; either member may be empty.
type Visitor struct {
	VisitorID ident.VisitorID `json:"visitor_id,omitempty"`
	SessionID ident.SessionID `json:"session_id,omitempty"`
}

// Audit is what is stored of a request and never answered or delivered (spec.md "Signal", rule 4).
type Audit struct {
	IP             string
	UserAgent      string
	AcceptLanguage string
	Origin         string
	Referer        string
	Crawler        bool // the User-Agent says that it is a crawler: taken and marked
}

// LedgerDigest is the name under which a signal is known everywhere, in claims and in the ledger: half of a SHA-256
// over connection and signal id.
func LedgerDigest(c ident.ConnectionID, s ident.SignalID) [16]byte {
	var buf [2 + 2*(4+ident.MaxBody)]byte
	b := binary.BigEndian.AppendUint16(buf[:0], uint16(len(c)))
	b = append(b, c...)
	b = append(b, s...)
	sum := sha256.Sum256(b)
	return [16]byte(sum[:16])
}
