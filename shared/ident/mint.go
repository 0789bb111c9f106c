package ident

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	mathrand "math/rand/v2"
	"strings"
	"time"
)

// identifier returns the prefix and, in lower-case base32hex, the bytes. That keeps the order of the bytes,
// so that minted identifiers sort by time.
func identifier(p Prefix, raw []byte) string {
	var room [64]byte
	b := append(append(room[:0], p...), '_')
	b = base32.HexEncoding.AppendEncode(b, raw)
	for i := range b[len(p):] {
		if c := &b[len(p)+i]; 'A' <= *c && *c <= 'Z' {
			*c += 'a' - 'A'
		}
	}
	return string(bytes.TrimRight(b, "="))
}

// UUIDv7 returns a version 7 UUID (RFC 9562): 48 bits of Unix milliseconds, the rest random. It is no secret,
// so its bits come from math/rand/v2, which the system seeds: crypto/rand costs a system call, and each
// request makes two.
func UUIDv7(now time.Time) [16]byte {
	var u [16]byte
	binary.BigEndian.PutUint64(u[0:], mathrand.Uint64())
	binary.BigEndian.PutUint64(u[8:], mathrand.Uint64())
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
	return identifier(p, u[:])
}

// Random returns a new identifier of 160 random bits, for identifiers that are a secret by themselves.
func Random(p Prefix) string {
	var b [20]byte
	_, _ = rand.Read(b[:])
	return identifier(p, b[:])
}

// RandomAt returns a new identifier that is a secret by itself and also carries its millisecond, so that it
// leads to one partition of a table that is partitioned by time: 48 bits of time and 144 random bits.
func RandomAt(p Prefix, now time.Time) string {
	var b [24]byte
	_, _ = rand.Read(b[6:])
	ms := uint64(now.UnixMilli())
	binary.BigEndian.PutUint16(b[0:], uint16(ms>>32))
	binary.BigEndian.PutUint32(b[2:], uint32(ms))
	return identifier(p, b[:])
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
	var room [256]byte
	hashed := appendPart(appendPart(room[:0], string(p)), string(c))
	for _, part := range parts {
		hashed = appendPart(hashed, part)
	}
	sum := sha256.Sum256(hashed)
	return identifier(p, sum[:20])
}

// appendPart writes the length first, so that different lists of parts never hash the same bytes.
func appendPart(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint64(b, uint64(len(s))), s...)
}
