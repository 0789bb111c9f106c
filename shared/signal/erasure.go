package signal

import (
	"crypto/sha256"
	"encoding/binary"

	"storefront.internal/shared/ident"
)

// Subject is what an erasure is of.
type Subject string

// The closed set of subjects.
const (
	VisitorSubject    Subject = "visitor"    // one shopper, by visitor id
	OrderSubject      Subject = "order"      // whoever bought an order, by its external id
	ConnectionSubject Subject = "connection" // everybody, by ""
)

// ErasureDigest knows the subject of an erasure when its name is gone: half of a SHA-256 over connection, subject and id.
func ErasureDigest(c ident.ConnectionID, s Subject, id string) [16]byte {
	b := make([]byte, 0, 4+len(c)+len(s)+len(id))
	b = append(binary.BigEndian.AppendUint16(b, uint16(len(c))), c...)
	b = append(binary.BigEndian.AppendUint16(b, uint16(len(s))), s...)
	sum := sha256.Sum256(append(b, id...))
	return [16]byte(sum[:16])
}
