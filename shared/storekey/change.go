package storekey

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// Change is a change of a storefront key: the key was issued or revoked. PostgreSQL and Redis hold the newest
// changes in their order, and an edge reads those that it has not seen.
type Change struct {
	Version int64  // of the keys, as of this change
	Token   string // random; after a restore it tells changes of the same version apart
	Digest  [32]byte
}

// Same reports whether both are the same change, not just changes of the same version.
func (c Change) Same(o Change) bool { return c.Version == o.Version && c.Token == o.Token }

// Member is the form of a change in the sorted set in Redis, whose score is the version.
func (c Change) Member() string { return c.Token + ":" + hex.EncodeToString(c.Digest[:]) }

// ParseMember returns the change of a member and its score.
func ParseMember(member string, score float64) (Change, error) {
	c := Change{Version: int64(score)}
	token, digest, _ := strings.Cut(member, ":")
	b, err := hex.DecodeString(digest)
	if err != nil || len(b) != len(c.Digest) || token == "" {
		return Change{}, fmt.Errorf("key change %d is malformed", c.Version)
	}
	c.Token = token
	copy(c.Digest[:], b)
	return c, nil
}
