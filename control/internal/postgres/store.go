// Package postgres owns the statements of control against schema control: connections, connector tokens, storefront
// keys, the catalog, and what shops of providers need. One exported method is one transaction. Drivers' errors are translated at its border: what a caller may see is
// a fault, and the rest names the SQLSTATE and never a value of a row. It refuses to decide: rules are of the use cases.
package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/pg"
)

// Jobs enqueues the work that a transaction causes, in that transaction.
type Jobs interface {
	EnqueueKeyPush(ctx context.Context, tx pgx.Tx, k ident.KeyID) error
}

// Store is schema control.
type Store struct {
	pool *pgxpool.Pool
	jobs Jobs
}

// New returns the Store behind a pool.
func New(pool *pgxpool.Pool, jobs Jobs) *Store { return &Store{pool: pool, jobs: jobs} }

// unavailable is what a client hears when PostgreSQL cannot be asked now.
const unavailable = "The store cannot be reached right now."

// Translate names what failed and turns a driver's error into a fault or into a text without values. A fault passes
// as it is.
func Translate(doing string, err error) error {
	var f *fault.Error
	if err == nil || errors.As(err, &f) {
		return err
	}
	class := pg.Class(err)
	err = withoutValues(doing, err)
	if class == pg.Transient {
		return fault.Wrap(fault.ServiceUnavailable, unavailable, err)
	}
	return err
}

// withoutValues keeps what an operator needs of a PostgreSQL error: messages and details may quote a row.
func withoutValues(doing string, err error) error {
	var p *pgconn.PgError
	if errors.As(err, &p) {
		return fmt.Errorf("%s: SQLSTATE %s, table %q, constraint %q", doing, p.Code, p.TableName, p.ConstraintName)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

func notFound(what string) error { return fault.New(fault.NotFound, "There is no such "+what+".") }
