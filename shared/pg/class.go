package pg

import (
	"context"
	"errors"
	"io"
	"net"

	"github.com/jackc/pgx/v5/pgconn"
)

// ErrorClass is what a caller can do about an error.
type ErrorClass uint8

const (
	// Other is what nobody foresaw: neither the data's fault nor known to pass. Nothing is thrown away for it.
	Other ErrorClass = iota
	// Poison is a value that can never be stored: bisect, and park the one that carries it.
	Poison
	// Transient passes by itself: repeat with back-off, for as long as it takes.
	Transient
	// Schema is a database that does not fit the binary: a missing table, right or partition. Repeat with back-off and alert.
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

// Class sorts an error by its SQLSTATE, and errors without one by whether the network or a deadline made them. Only 22xxx and a violated unique or check constraint of a table's own are
// Poison (architecture, the sink).
func Class(err error) ErrorClass {
	if err == nil {
		return Other
	}
	var connectErr *pgconn.ConnectError
	if errors.As(err, &connectErr) { // no statement ran, whatever the server said to the login
		return Transient
	}
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		return classOfState(pgErr)
	}
	var netErr net.Error
	switch {
	case errors.Is(err, ErrCommitUnknown), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed), errors.Is(err, pgconn.ErrConnClosed),
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
	case "25006", "25P03": // read-only after a failover; ended for idling
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

// State is the SQLSTATE of an error, empty when it has none.
func State(err error) string {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		return pgErr.Code
	}
	return ""
}
