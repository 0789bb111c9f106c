package pg

import (
	"context"
	"errors"
	"io"
	"net"

	"github.com/jackc/pgx/v5/pgconn"
)

// ErrorClass says what a caller can do about an error.
type ErrorClass uint8

const (
	// Other is an unexpected error: neither known to be caused by the data nor known to pass. No data is
	// dropped for it.
	Other ErrorClass = iota
	// Poison is a value that can never be stored: bisect the batch and park the record that holds it.
	Poison
	// Transient errors pass: repeat with back-off, without a limit.
	Transient
	// Schema is a database that does not fit the binary: a missing table, privilege or partition. Repeat with
	// back-off and alert.
	Schema
)

// String implements fmt.Stringer; the words are metric labels.
func (c ErrorClass) String() string {
	switch c {
	case Poison:
		return "poison"
	case Transient:
		return "transient"
	case Schema:
		return "schema"
	default:
		return "other"
	}
}

// Class classifies an error by its SQLSTATE, and one without a SQLSTATE by whether the network or a deadline
// caused it. Only 22xxx and violated unique and named check constraints are Poison.
func Class(err error) ErrorClass {
	if err == nil {
		return Other
	}
	var connectErr *pgconn.ConnectError
	if errors.As(err, &connectErr) { // no statement ran, whatever the answer to the login was
		return Transient
	}
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		return classOfState(pgErr)
	}
	var netErr net.Error
	switch {
	case errors.Is(err, ErrCommitUnknown), errors.Is(err, context.Canceled),
		errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed),
		errors.Is(err, pgconn.ErrConnClosed),
		errors.As(err, &netErr), pgconn.SafeToRetry(err), pgconn.Timeout(err):
		return Transient
	}
	return Other
}

func classOfState(e *pgconn.PgError) ErrorClass {
	switch e.Code {
	case "23505":
		return Poison
	case "23514":
		if e.ConstraintName == "" { // no partition for the row, or the default partition's bound
			return Schema
		}
		return Poison
	case "25006", "25P03": // read-only after a failover; idle session ended
		return Transient
	case "3F000":
		return Schema
	}
	if len(e.Code) < 2 {
		return Other
	}
	switch e.Code[:2] {
	case "22":
		return Poison
	case "08", "40", "53", "55", "57", "58":
		return Transient
	case "42":
		return Schema
	}
	return Other
}

// LockNotAvailable is the SQLSTATE of a statement that waited for a lock for longer than lock_timeout, or
// that does not wait.
const LockNotAvailable = "55P03"

// UndefinedTable is the SQLSTATE of a statement that names a table that does not exist.
const UndefinedTable = "42P01"

// SQLState returns the SQLSTATE of an error, empty when it has none.
func SQLState(err error) string {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		return pgErr.Code
	}
	return ""
}
