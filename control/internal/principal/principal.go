// Package principal owns the tokens of the configuration: it tells whether a token is a connector's (one for
// each provider), the backend's or the engine's. It keeps only SHA-256 digests of tokens. Tokens of custom
// connectors are in PostgreSQL; of those the package only names the role.
package principal

import (
	"crypto/sha256"
	"crypto/subtle"
)

// Role is what a principal may do.
type Role uint8

// The roles. No token has the zero role.
const (
	Connector Role = iota + 1 // of any provider, and operators
	Backend
	Engine
	Custom // of one custom connection; its token is in PostgreSQL
	// ConnectorOrBackend is what an operation asks for that both may call. No token has it.
	ConnectorOrBackend
)

// Admits reports whether the holder of a token may do what needs role d.
func (d Role) Admits(holder Role) bool {
	if d == ConnectorOrBackend {
		return holder == Connector || holder == Backend
	}
	return d == holder
}

// String names the role in logs and metrics.
func (d Role) String() string {
	switch d {
	case Connector:
		return "connector"
	case Backend:
		return "backend"
	case Engine:
		return "engine"
	case Custom:
		return "custom-connector"
	case ConnectorOrBackend:
		return "connector or backend"
	}
	return "none"
}

// Identity is the holder of a token. Provider is set for connectors only.
type Identity struct {
	Role     Role
	Provider string
}

// Keyring holds the digests of every principal's tokens.
type Keyring struct {
	entries []entry
}

type entry struct {
	digest   [sha256.Size]byte
	identity Identity
}

// Identify returns the holder of a token. It compares with every token in constant time and without an early
// exit, so that the time does not tell which token was nearly right.
func (k *Keyring) Identify(token []byte) (Identity, bool) {
	digest := sha256.Sum256(token)
	found := len(k.entries)
	for i := range k.entries {
		same := subtle.ConstantTimeCompare(digest[:], k.entries[i].digest[:])
		found = subtle.ConstantTimeSelect(same, i, found)
	}
	if found == len(k.entries) {
		return Identity{}, false
	}
	return k.entries[found].identity, true
}

// Mounted reports whether the role has a token.
func (k *Keyring) Mounted(d Role) bool {
	for i := range k.entries {
		if d.Admits(k.entries[i].identity.Role) {
			return true
		}
	}
	return false
}
