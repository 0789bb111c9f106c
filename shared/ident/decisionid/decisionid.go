// Package decisionid owns the signed Decision id: "dec_" and the base64url of key id, UUIDv7 and a truncated
// HMAC-SHA-256 over connection and UUID. So an edge recognizes an id that this service minted for this
// connection without a look-up. An unknown id and one of another connection fail the same check in the same
// time.
package decisionid

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"strings"
	"sync"
	"time"

	"storefront.internal/shared/ident"
)

const (
	prefix  = "dec_"
	kidLen  = 4
	uuidLen = 16
	macLen  = 16 // 128 bits
	rawLen  = kidLen + uuidLen + macLen
	bodyLen = (rawLen*8 + 5) / 6
	minKey  = 32
)

type key struct {
	kid    [kidLen]byte
	digest [sha256.Size]byte // of the secret
	macs   sync.Pool         // of *macState: setting up a keyed hash is expensive
}

// macState is the scratch memory of one MAC computation, which returns it to the pool of its key.
type macState struct {
	hash hash.Hash
	buf  []byte
}

// Keyring mints with its first key and verifies with all of them.
type Keyring struct{ keys []*key }

// ParseKeyring parses "kid:base64secret[,kid:base64secret…]". The first key mints, all verify, so a key is
// rotated by putting a new one in front. A kid is 1 to 4 characters of [a-z0-9], a secret at least 32 bytes.
// Errors never quote a secret.
func ParseKeyring(s string) (*Keyring, error) {
	var ring Keyring
	for i, part := range strings.Split(s, ",") {
		k, err := parseKey(strings.TrimSpace(part))
		if err != nil {
			return nil, fmt.Errorf("decision key %d: %w", i+1, err)
		}
		for _, other := range ring.keys {
			if other.kid == k.kid {
				return nil, fmt.Errorf("decision key %d: its kid is used twice", i+1)
			}
			if hmac.Equal(other.digest[:], k.digest[:]) {
				return nil, fmt.Errorf("decision key %d: its secret is used under another kid", i+1)
			}
		}
		ring.keys = append(ring.keys, k)
	}
	return &ring, nil
}

func parseKey(s string) (*key, error) {
	kid, secret, found := strings.Cut(s, ":")
	if !found || len(kid) == 0 || len(kid) > kidLen ||
		strings.Trim(kid, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
		return nil, errors.New("want kid:base64secret with a kid of 1 to 4 characters of [a-z0-9]")
	}
	raw, err := base64.StdEncoding.DecodeString(secret)
	if err != nil {
		return nil, errors.New("its secret is not base64")
	}
	if len(raw) < minKey {
		return nil, errors.New("its secret is shorter than 32 bytes")
	}
	k := &key{digest: sha256.Sum256(raw)}
	k.macs.New = func() any { return &macState{hash: hmac.New(sha256.New, raw)} }
	copy(k.kid[:], kid)
	return k, nil
}

// Mint returns a new Decision id of the connection.
func (r *Keyring) Mint(c ident.ConnectionID, now time.Time) ident.DecisionID {
	var raw [rawLen]byte
	k := r.keys[0]
	u := ident.UUIDv7(now)
	copy(raw[:], k.kid[:])
	copy(raw[kidLen:], u[:])
	mac := k.mac(c, u)
	copy(raw[kidLen+uuidLen:], mac[:])
	return ident.DecisionID(prefix + base64.RawURLEncoding.EncodeToString(raw[:]))
}

// Verify reports whether this keyring minted the id for the connection. It computes one MAC for any id, so
// its time tells nothing.
func (r *Keyring) Verify(c ident.ConnectionID, id string) bool {
	raw, ok := decode(id)
	k, known := r.byKid([kidLen]byte(raw[:kidLen]))
	want := k.mac(c, [uuidLen]byte(raw[kidLen:kidLen+uuidLen]))
	equal := hmac.Equal(want[:], raw[kidLen+uuidLen:])
	return ok && known && equal
}

// MintedAt returns the millisecond that the id carries. It does not verify the id.
func MintedAt(id string) (time.Time, bool) {
	raw, ok := decode(id)
	if !ok {
		return time.Time{}, false
	}
	u := raw[kidLen:]
	ms := uint64(binary.BigEndian.Uint16(u))<<32 | uint64(binary.BigEndian.Uint32(u[2:]))
	return time.UnixMilli(int64(ms)).UTC(), true
}

// decode returns zero bytes for a malformed id, so that the caller does the same work.
func decode(id string) (raw [rawLen]byte, ok bool) {
	if len(id) != len(prefix)+bodyLen || id[:len(prefix)] != prefix {
		return raw, false
	}
	n, err := base64.RawURLEncoding.Strict().Decode(raw[:], []byte(id[len(prefix):]))
	if err != nil || n != rawLen {
		return [rawLen]byte{}, false
	}
	return raw, true
}

func (r *Keyring) byKid(kid [kidLen]byte) (*key, bool) {
	for _, k := range r.keys {
		if k.kid == kid {
			return k, true
		}
	}
	return r.keys[0], false
}

func (k *key) mac(c ident.ConnectionID, u [uuidLen]byte) [macLen]byte {
	st := k.macs.Get().(*macState)
	defer k.macs.Put(st)
	st.buf = append(st.buf[:0], "storefront decision v1\x00"...)
	st.buf = append(st.buf, c...)
	st.buf = append(st.buf, 0)
	st.buf = append(st.buf, u[:]...)
	st.hash.Reset()
	st.hash.Write(st.buf)
	st.buf = st.hash.Sum(st.buf[:0])
	return [macLen]byte(st.buf[:macLen])
}
