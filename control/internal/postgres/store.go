// Package postgres owns control's SQL: connections, tokens, storefront keys, the catalog, and what shops of
// providers need. One exported method is one transaction. It translates errors of the driver: callers get a
// fault.Error, or an error that names the SQLSTATE and never a value of a row. Rules belong to the use cases.
package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"storefront.internal/control/internal/bootstrap"
	"storefront.internal/control/internal/installation"
	"storefront.internal/control/internal/observation"
	"storefront.internal/shared/catalog"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/pg"
)

// Jobs enqueues the work that a transaction causes, in that transaction. Package jobs implements it.
type Jobs interface {
	EnqueueItemPush(ctx context.Context, tx pgx.Tx, c ident.ConnectionID, items []ident.ItemID) error
	EnqueueRecompose(ctx context.Context, tx pgx.Tx, c ident.ConnectionID, nodes []catalog.TaxonomyID) error
	EnqueueRefresh(ctx context.Context, tx pgx.Tx, c ident.ConnectionID, keys ...observation.Key) error
	EnqueueShopCheck(ctx context.Context, tx pgx.Tx, uninstalled bool, shops ...ident.ConnectionID) error
	EnqueuePeriodicChecks(ctx context.Context, tx pgx.Tx, shops ...ident.ConnectionID) error
	EnqueueSubscriptionChecks(ctx context.Context, tx pgx.Tx, shops ...ident.ConnectionID) error
	EnqueueCatchUp(ctx context.Context, tx pgx.Tx, shops ...ident.ConnectionID) error
	EnqueueBootstrap(ctx context.Context, tx pgx.Tx, u bootstrap.Urgency, runs ...ident.RunID) error
	EnqueuePrivacyRequest(ctx context.Context, tx pgx.Tx, id ident.WebhookEventID) error
	// EnqueueInstallations gives sagas without a job one.
	EnqueueInstallations(ctx context.Context, tx pgx.Tx, sagas ...installation.Ref) error
	// WakeInstallation makes the job of a saga due now.
	WakeInstallation(ctx context.Context, tx pgx.Tx, saga installation.Ref) error
	// CompleteTx completes the job of the context.
	CompleteTx(ctx context.Context, tx pgx.Tx) error
}

// Store is the part of schema control that holds connections, tokens and keys.
type Store struct {
	pool *pgxpool.Pool
	jobs Jobs
}

// New returns the Store behind a pool.
func New(pool *pgxpool.Pool, jobs Jobs) *Store { return &Store{pool: pool, jobs: jobs} }

// unavailable is what a client reads while PostgreSQL is down.
const unavailable = "The store cannot be reached right now."

// Translate turns an error of the driver into a fault.Error, or into an error without values of rows. It
// returns a fault.Error unchanged.
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

// withoutValues keeps the SQLSTATE and names: messages and details may quote a row.
func withoutValues(doing string, err error) error {
	var p *pgconn.PgError
	if errors.As(err, &p) {
		return fmt.Errorf("%s: SQLSTATE %s, table %q, constraint %q", doing, p.Code,
			p.TableName, p.ConstraintName)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

func notFound(what string) error { return fault.New(fault.NotFound, "There is no such "+what+".") }

// connectionExists returns not_found for a connection that does not exist.
func connectionExists(ctx context.Context, tx pgx.Tx, c ident.ConnectionID) error {
	var exists bool
	err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM control.connections WHERE connection_id = $1)`,
		c).Scan(&exists)
	if err == nil && !exists {
		return notFound("connection")
	}
	return err
}

// list reads all rows of a query.
func list[T any](ctx context.Context, db querier, doing string, scan pgx.RowToFunc[T], sql string,
	args ...any) ([]T, error) {
	rows, _ := db.Query(ctx, sql, args...) // CollectRows returns its error
	all, err := pgx.CollectRows(rows, scan)
	return all, Translate(doing, err)
}

// querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}
