package pg

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"storefront.internal/shared/backoff"
)

// ErrCommitUnknown wraps the error of a COMMIT that was sent and whose answer was lost: the transaction may
// be committed. Only idempotent work may be repeated after it.
var ErrCommitUnknown = errors.New("outcome of COMMIT unknown")

// Beginner is a pool or a connection.
type Beginner interface {
	BeginTx(ctx context.Context, opts pgx.TxOptions) (pgx.Tx, error)
}

// CustomPlans returns a Beginner whose transactions plan each statement anew. The generic plan of a prepared
// statement that was made while a table was small reads the whole table later; planning costs little beside a
// batch of rows.
func CustomPlans(db Beginner) Beginner { return customPlans{db} }

type customPlans struct{ db Beginner }

// BeginTx implements Beginner.
func (c customPlans) BeginTx(ctx context.Context, opts pgx.TxOptions) (pgx.Tx, error) {
	opts.BeginQuery = "BEGIN; SET LOCAL plan_cache_mode = force_custom_plan"
	return c.db.BeginTx(ctx, opts)
}

// rollbackTimeout bounds the ROLLBACK of a transaction whose context ended.
const rollbackTimeout = time.Second

// maxAttempts bounds RetryTx.
const maxAttempts = 8

// InTx runs fn in one transaction and commits it. It rolls back when fn returns an error or panics. It
// repeats nothing; a COMMIT without an answer returns ErrCommitUnknown.
func InTx(ctx context.Context, db Beginner, fn func(pgx.Tx) error) error {
	tx, err := db.BeginTx(ctx, pgx.TxOptions{})
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	done := false
	defer func() {
		if !done { // an error, a panic, or runtime.Goexit
			rollback(ctx, tx)
		}
	}()
	if err := fn(tx); err != nil {
		return err
	}
	done = true // COMMIT ends the transaction, whatever its answer
	return commit(ctx, tx)
}

func rollback(ctx context.Context, tx pgx.Tx) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	_ = tx.Rollback(ctx) // a failed rollback closes the connection, and the server rolls back
}

func commit(ctx context.Context, tx pgx.Tx) error {
	err := tx.Commit(ctx)
	if err == nil {
		return nil
	}
	var pgErr *pgconn.PgError
	switch {
	case errors.As(err, &pgErr) && pgErr.SeverityUnlocalized == "ERROR",
		// the server refused; a FATAL error may follow a commit that waited for its replicas
		errors.Is(err, pgx.ErrTxCommitRollback), errors.Is(err, pgx.ErrTxClosed), pgconn.SafeToRetry(err):
		return fmt.Errorf("commit: %w", err)
	}
	return fmt.Errorf("%w: %w", ErrCommitUnknown, err)
}

// RetryTx is InTx, but repeats the whole transaction a few times, with back-off, when the server ended it for
// a serialization failure (40001) or a deadlock (40P01). fn must have no effect outside of its transaction.
func RetryTx(ctx context.Context, db Beginner, fn func(pgx.Tx) error) error {
	retryBackoff := backoff.Policy{Min: 10 * time.Millisecond, Max: 400 * time.Millisecond}
	for attempt := 1; ; attempt++ {
		err := InTx(ctx, db, fn)
		if err == nil || !retriable(err) || attempt == maxAttempts {
			return err
		}
		if backoff.Sleep(ctx, retryBackoff.Delay(attempt)) != nil {
			return err
		}
	}
}

func retriable(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && (pgErr.Code == "40001" || pgErr.Code == "40P01")
}
