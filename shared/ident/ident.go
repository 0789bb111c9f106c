// Package ident owns the identifiers of the service: their prefixes, their form, and how they are minted and
// derived. It does not know whether the thing that an identifier names exists, or to whom it belongs.
package ident

// Prefix is the part of an identifier before its underscore; it names the kind of thing.
type Prefix string

// The prefixes of all identifiers.
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
	WebhookEvent   Prefix = "whd"
)

type (
	// ConnectionID names a connection: our tenant, one shop at one platform.
	ConnectionID string
	// StoreID names the shop of a connection.
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
	// ObservationID names an observation. Who knows it may read its snapshot.
	ObservationID string
	// KeyID names the record of a storefront key.
	KeyID string
	// ConnectorTokenID names the record of the token of a custom connector.
	ConnectorTokenID string
	// InstallationID names the installation of a platform's shop.
	InstallationID string
	// EndpointID names an endpoint that receives webhooks of a connection.
	EndpointID string
	// WebhookEventID names a received webhook.
	WebhookEventID string
	// RunID names a bootstrap run of a connection.
	RunID string
	// CommandID names the command that opened a bootstrap run.
	CommandID string
)

// MaxBody is the greatest number of characters after the underscore.
const MaxBody = 64

// Valid reports whether s is the prefix, an underscore and 1 to 64 characters of [A-Za-z0-9_-].
func Valid(p Prefix, s string) bool { return valid(p, s) }

// ValidBytes is Valid for bytes, without a copy.
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

// bodyBytes is a table, since checking ids is a large part of decoding a batch.
var bodyBytes = func() (in [256]bool) { //nolint:gochecknoglobals // Go has no constant arrays
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
