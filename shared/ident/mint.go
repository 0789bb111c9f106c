package ident

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"strings"
	"time"
)

// encode returns lower-case base32hex, which keeps the order of the bytes, so that minted identifiers sort by
// time.
func encode(b []byte) string {
	return strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(b))
}

// UUIDv7 returns a version 7 UUID (RFC 9562): 48 bits of Unix milliseconds, the rest random.
func UUIDv7(now time.Time) [16]byte {
	var u [16]byte
	_, _ = rand.Read(u[6:]) // never fails
	ms := uint64(now.UnixMilli())
	binary.BigEndian.PutUint16(u[0:], uint16(ms>>32))
	binary.BigEndian.PutUint32(u[2:], uint32(ms))
	u[6] = u[6]&0x0f | 0x70
	u[8] = u[8]&0x3f | 0x80
	return u
}

// Mint returns a new time-ordered identifier.
func Mint(p Prefix, now time.Time) string {
	u := UUIDv7(now)
	return string(p) + "_" + encode(u[:])
}

// Random returns a new identifier of 160 random bits, for identifiers that are a secret by themselves.
func Random(p Prefix) string {
	var b [20]byte
	_, _ = rand.Read(b[:])
	return string(p) + "_" + encode(b[:])
}

// RandomAt returns a new identifier that is a secret by itself and also carries its millisecond, so that it
// leads to one partition of a table that is partitioned by time: 48 bits of time and 144 random bits.
func RandomAt(p Prefix, now time.Time) string {
	var b [24]byte
	_, _ = rand.Read(b[6:])
	ms := uint64(now.UnixMilli())
	binary.BigEndian.PutUint16(b[0:], uint16(ms>>32))
	binary.BigEndian.PutUint32(b[2:], uint32(ms))
	return string(p) + "_" + encode(b[:])
}

// MintedAt returns the millisecond of an identifier of Mint or RandomAt. For any other identifier it returns
// false or an arbitrary time.
func MintedAt(id string) (time.Time, bool) {
	_, body, _ := strings.Cut(id, "_")
	raw, err := base32.HexEncoding.WithPadding(base32.NoPadding).DecodeString(strings.ToUpper(body))
	if err != nil || len(raw) != 16 && len(raw) != 24 {
		return time.Time{}, false
	}
	ms := uint64(binary.BigEndian.Uint16(raw))<<32 | uint64(binary.BigEndian.Uint32(raw[2:]))
	return time.UnixMilli(int64(ms)).UTC(), true
}

// Derive returns the identifier of an entity of a connection: a keyless hash, the same on every path. It is
// published, so that clients derive the same ids: the prefix, an underscore, and in lower-case base32hex the
// first 20 bytes of the SHA-256 over prefix, connection and parts, each behind its length in bytes as a
// 64-bit big-endian number. edge/sdk/testdata/ids.json has vectors.
func Derive(p Prefix, c ConnectionID, parts ...string) string {
	h := sha256.New()
	writePart(h, string(p))
	writePart(h, string(c))
	for _, part := range parts {
		writePart(h, part)
	}
	return string(p) + "_" + encode(h.Sum(nil)[:20])
}

// writePart writes the length first, so that different lists of parts never hash the same bytes.
func writePart(w interface{ Write([]byte) (int, error) }, s string) {
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(len(s)))
	_, _ = w.Write(n[:])
	_, _ = w.Write([]byte(s))
}
