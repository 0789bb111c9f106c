package signal

import (
	"crypto/sha256"
	"encoding/binary"

	"storefront.internal/shared/ident"
)

// Subject says whose data an erasure removes.
type Subject string

// The closed set of subjects.
const (
	VisitorSubject    Subject = "visitor"    // one shopper, by visitor id
	OrderSubject      Subject = "order"      // the buyer of an order, by its external id
	ConnectionSubject Subject = "connection" // all shoppers, by ""
)

// ErasureDigest identifies the subject of an erasure after its id is erased: half of a SHA-256 over
// connection, subject and id.
func ErasureDigest(c ident.ConnectionID, s Subject, id string) [16]byte {
	b := make([]byte, 0, 4+len(c)+len(s)+len(id))
	b = append(binary.BigEndian.AppendUint16(b, uint16(len(c))), c...)
	b = append(binary.BigEndian.AppendUint16(b, uint16(len(s))), s...)
	sum := sha256.Sum256(append(b, id...))
	return [16]byte(sum[:16])
}
