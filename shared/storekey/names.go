package storekey

import "encoding/hex"

// The names under which control tells the edges of keys in Redis. The braces put them into one slot of a Redis Cluster:
// revocations and the version that vouches for them are written in one step, so that no copy of that Redis, however
// stale, holds the version without the revocations.

// RecordName names the record of a key: a Grant as JSON, or the word "revoked".
func RecordName(prefix string, digest [32]byte) string {
	return prefix + "{keys}:" + hex.EncodeToString(digest[:])
}

// VersionName names the version of the keys that the records are abreast of: a decimal.
func VersionName(prefix string) string { return prefix + "{keys}:version" }

// ChangesName names the channel that hints that the version rose.
func ChangesName(prefix string) string { return prefix + "{keys}:changed" }
