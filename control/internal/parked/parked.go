// Package parked is the vocabulary of parked records: what the relay could not store and keeps with its
// bytes. Operators look at them, replay them (a relay stores them again) or drop them.
package parked

import "time"

// Record is a parked record. Times and texts that a record does not have are zero.
type Record struct {
	ID           int64
	Topic        string
	Partition    int
	Offset       int64
	ParkedAt     time.Time
	Reason       string
	SQLState     string
	ConnectionID string
	SignalID     string

	ReplayRequestedAt time.Time // a relay has not stored the record yet
	ReplayFailedAt    time.Time // the last replay was refused
	ReplayedAt        time.Time // the record is stored; its bytes are gone

	Bytes []byte // only when one record is shown
}

// The bounds of a page.
const (
	DefaultLimit = 100
	MaxLimit     = 500
)

// Query selects parked records, oldest first.
type Query struct {
	Topic string // "": all topics
	After int64  // the id of the last record of the page before
	Limit int    // 0: DefaultLimit
}

// Page is a page of records. Next is 0 on the last page.
type Page struct {
	Records []Record
	Next    int64
}
