package pg

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// ErrCommitUnknown wraps the error of a COMMIT that was sent and whose answer was lost: the transaction may have happened. Only work that is safe to repeat may be repeated.
var ErrCommitUnknown = errors.New("outcome of COMMIT unknown")

// Beginner is a pool or a connection.
type Beginner interface {
	BeginTx(ctx context.Context, opts pgx.TxOptions) (pgx.Tx, error)
}

// rollbackTimeout bounds the ROLLBACK of a transaction whose context ended.
const rollbackTimeout = time.Second

// retries bounds RetryTx.
const retries = 8

// InTx runs fn in one transaction and commits it. An error or a panic of fn rolls back. Nothing is repeated; a COMMIT without an answer gives ErrCommitUnknown.
func InTx(ctx context.Context, db Beginner, fn func(pgx.Tx) error) error {
	tx, err := db.BeginTx(ctx, pgx.TxOptions{})
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	done := false
	defer func() {
		if !done { // an error, a panic, or a goroutine that a test ended
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
	case errors.As(err, &pgErr) && pgErr.SeverityUnlocalized == "ERROR", // the server refused; a FATAL one may follow a commit that waited for its replicas
		errors.Is(err, pgx.ErrTxCommitRollback), errors.Is(err, pgx.ErrTxClosed), pgconn.SafeToRetry(err):
		return fmt.Errorf("commit: %w", err)
	}
	return fmt.Errorf("%w: %w", ErrCommitUnknown, err)
}

// RetryTx is InTx that repeats the whole transaction when the server ended it for a serialization failure (40001) or a deadlock (40P01), a few times and with growing pauses. fn must
// have no effect outside of its transaction.
func RetryTx(ctx context.Context, db Beginner, fn func(pgx.Tx) error) error {
	pause := 5 * time.Millisecond
	for attempt := 1; ; attempt++ {
		err := InTx(ctx, db, fn)
		if err == nil || !retriable(err) || attempt == retries {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause/2 + rand.N(pause)):
		}
		pause = min(2*pause, 200*time.Millisecond)
	}
}

func retriable(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && (pgErr.Code == "40001" || pgErr.Code == "40P01")
}
