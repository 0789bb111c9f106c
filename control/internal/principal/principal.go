// Package principal owns the answer to "who holds this token": the connector principals (one for each provider), the
// backend and the engine (spec.md "Internal surface: four principals"; contract, section 3). Tokens come from
// configuration and are kept as SHA-256 digests only. It refuses to know routes: httpapi asks for a door.
//
// The fourth principal, a custom connector, has its token in the database: this package names its door and no more.
package principal

import (
	"crypto/sha256"
	"crypto/subtle"
)

// Door is what a token of configuration opens.
type Door uint8

// The doors. No token is of the zero door.
const (
	Connector Door = iota + 1 // of any provider; the operator too
	Backend
	Engine
	Custom // of a connection of its own; no token of configuration opens it
)

// String names the door in logs and metrics.
func (d Door) String() string {
	switch d {
	case Connector:
		return "connector"
	case Backend:
		return "backend"
	case Engine:
		return "engine"
	case Custom:
		return "custom-connector"
	}
	return "none"
}

// Identity is the holder of a token. Provider is set for connectors only.
type Identity struct {
	Door     Door
	Provider string
}

// Keyring knows the digest of every principal's tokens.
type Keyring struct {
	entries []entry
}

type entry struct {
	digest   [sha256.Size]byte
	identity Identity
}

// Identify returns the holder of a token. It compares with every principal, in constant time and without an early
// exit, so that the time says nothing about which one was nearly met.
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

// Mounted reports whether the door has a token. One without stays unmounted: it is opened by no token.
func (k *Keyring) Mounted(d Door) bool {
	for i := range k.entries {
		if k.entries[i].identity.Door == d {
			return true
		}
	}
	return false
}

// Providers returns the providers that have a connector principal, in the order of the configuration.
func (k *Keyring) Providers() []string {
	var names []string
	seen := make(map[string]bool)
	for i := range k.entries {
		id := k.entries[i].identity
		if id.Door == Connector && !seen[id.Provider] {
			seen[id.Provider] = true
			names = append(names, id.Provider)
		}
	}
	return names
}
