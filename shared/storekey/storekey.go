// Package storekey owns the storefront key: its scopes, the form of its secret, its digest, and the grant
// that it gives. Control stores keys, the edge looks them up.
package storekey

import (
	"crypto/rand"
	"crypto/sha256"
	"hash/crc32"
	"slices"

	"storefront.internal/shared/ident"
)

// Scope is a permission of a key.
type Scope string

// The closed set of scopes.
const (
	CatalogRead         Scope = "catalog:read"
	RecommendationsRead Scope = "recommendations:read"
	SignalsWrite        Scope = "signals:write"
)

// AllScopes returns the closed set, in the order in which keys list them.
func AllScopes() []Scope { return []Scope{CatalogRead, RecommendationsRead, SignalsWrite} }

// ParseScope reports whether s is a scope of the closed set.
func ParseScope(s string) (Scope, bool) {
	return Scope(s), slices.Contains(AllScopes(), Scope(s))
}

// Grant is what a live key allows: access to one connection and its shop, within its scopes.
type Grant struct {
	KeyID        ident.KeyID        `json:"api_key_id"`
	ConnectionID ident.ConnectionID `json:"connection_id"`
	StoreID      ident.StoreID      `json:"store_id"`
	Scopes       []Scope            `json:"scopes"`
}

// Allows reports whether the grant holds the scope.
func (g *Grant) Allows(s Scope) bool { return slices.Contains(g.Scopes, s) }

const (
	prefix    = "spk_"
	alphabet  = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	randomLen = 32 // base62 characters: 190 bits
	crcLen    = 6  // base62 characters hold 32 bits
	secretLen = len(prefix) + randomLen + crcLen
)

// NewSecret returns a new secret: "spk_", 32 random characters and a checksum, which leak scanners and the
// edge verify without a look-up.
func NewSecret() string {
	b := make([]byte, 0, secretLen)
	b = append(b, prefix...)
	for len(b) < len(prefix)+randomLen {
		b = append(b, randomCharacter())
	}
	return string(appendCRC(b, b))
}

// randomCharacter rejects bytes that would make some characters more likely.
func randomCharacter() byte {
	var b [1]byte
	for {
		_, _ = rand.Read(b[:])
		if b[0] < 4*byte(len(alphabet)) {
			return alphabet[b[0]%byte(len(alphabet))]
		}
	}
}

func appendCRC(dst, of []byte) []byte {
	var out [crcLen]byte
	sum := crc32.ChecksumIEEE(of)
	for i := crcLen - 1; i >= 0; i-- {
		out[i] = alphabet[sum%uint32(len(alphabet))]
		sum /= uint32(len(alphabet))
	}
	return append(dst, out[:]...)
}

// WellFormed reports whether the secret has the form and the checksum of one that this service made.
func WellFormed(secret []byte) bool {
	if len(secret) != secretLen || string(secret[:len(prefix)]) != prefix {
		return false
	}
	var want [crcLen]byte
	head := secret[:secretLen-crcLen]
	return string(appendCRC(want[:0], head)) == string(secret[secretLen-crcLen:])
}

// Digest returns the digest under which a secret is stored and looked up.
func Digest(secret []byte) [32]byte { return sha256.Sum256(secret) }
