package storekey

import "encoding/hex"

// The names of the Redis keys in which control publishes storefront keys to the edges. The braces put them
// into one slot of a Redis Cluster: revocations and the version that covers them are written in one step, so
// that no copy of that Redis, however old, holds the version without the revocations.

// RecordName names the record of a storefront key: a Grant as JSON, or the word "revoked".
func RecordName(prefix string, digest [32]byte) string {
	return prefix + "{keys}:" + hex.EncodeToString(digest[:])
}

// VersionName names the version up to which the records are complete, a decimal number.
func VersionName(prefix string) string { return prefix + "{keys}:version" }

// LogName names the sorted set of the newest changes up to the version: a Change's member by its version.
func LogName(prefix string) string { return prefix + "{keys}:log" }

// ChangesName names the channel that announces a new version.
func ChangesName(prefix string) string { return prefix + "{keys}:changed" }
