// Package ident owns the service's identifiers: their prefixes, their form, and how they are minted and derived
// (contract, section 1 "Ids"). It refuses to know what an identifier names: whether a connection exists, or to whom
// an item belongs, is asked elsewhere.
package ident

// Prefix is the part of an identifier before its underscore; it names the kind of thing.
type Prefix string

// The prefixes of spec.md and contract, section 1.
const (
	Signal         Prefix = "sig"
	Decision       Prefix = "dec"
	Item           Prefix = "itm"
	Variant        Prefix = "var"
	Visitor        Prefix = "vis"
	Session        Prefix = "ses"
	Observation    Prefix = "obs"
	Connection     Prefix = "con"
	Store          Prefix = "str"
	Installation   Prefix = "ins"
	Endpoint       Prefix = "whe"
	Key            Prefix = "key"
	Command        Prefix = "cmd"
	Run            Prefix = "bsr"
	ConnectorToken Prefix = "cct"
	Taxonomy       Prefix = "tax"
	Order          Prefix = "ord"
	Delivery       Prefix = "whd"
)

type (
	// ConnectionID names a connected store.
	ConnectionID string
	// StoreID names the store behind a connection.
	StoreID string
	// SignalID names a signal: the client's idempotency key.
	SignalID string
	// DecisionID names a served recommendation.
	DecisionID string
	// ItemID names a canonical item.
	ItemID string
	// VariantID names a canonical variant.
	VariantID string
	// VisitorID names a shopper, as the storefront knows them.
	VisitorID string
	// SessionID names a shopper's session.
	SessionID string
	// ObservationID names an observation; it is the whole authority to read its snapshot.
	ObservationID string
	// KeyID names the record of a storefront key.
	KeyID string
	// ConnectorTokenID names the record of a custom connector's token.
	ConnectorTokenID string
	// InstallationID names the installation of a provider's store.
	InstallationID string
	// EndpointID names where notifications of a connection arrive.
	EndpointID string
	// DeliveryID names a notification that arrived.
	DeliveryID string
	// RunID names a load of a connection.
	RunID string
	// CommandID names the command that opened a load.
	CommandID string
)

// MaxBody is the greatest number of characters after the underscore.
const MaxBody = 64

// Valid reports whether s is the prefix, an underscore and 1 to 64 characters of [A-Za-z0-9_-].
func Valid(p Prefix, s string) bool { return valid(p, s) }

// ValidBytes is Valid for bytes that are not to be copied.
func ValidBytes(p Prefix, b []byte) bool { return valid(p, b) }

func valid[T string | []byte](p Prefix, s T) bool {
	n := len(p)
	if len(s) < n+2 || len(s) > n+1+MaxBody || s[n] != '_' {
		return false
	}
	for i := range n {
		if s[i] != p[i] {
			return false
		}
	}
	for i := n + 1; i < len(s); i++ {
		if !bodyByte(s[i]) {
			return false
		}
	}
	return true
}

// bodyByte reports whether c is one of [A-Za-z0-9_-].
func bodyByte(c byte) bool { return bodyBytes[c] }

// bodyBytes is a table, since ids are most of a batch: it takes a tenth less to decode one than with comparisons.
var bodyBytes = func() (in [256]bool) { //nolint:gochecknoglobals // a constant, which Go has no arrays of
	for _, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") {
		in[c] = true
	}
	return in
}()

// RequestID returns an inbound request id when it may be kept: 1 to 128 characters of [A-Za-z0-9._-].
func RequestID(s string) (string, bool) {
	if len(s) == 0 || len(s) > 128 {
		return "", false
	}
	for i := range len(s) {
		if !bodyByte(s[i]) && s[i] != '.' {
			return "", false
		}
	}
	return s, true
}
