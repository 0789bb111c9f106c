package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/shop"
	"storefront.internal/shared/backoff"
	"storefront.internal/shared/fault"
)

// retryForever is the MaxAttempts of a job that an outage must not end: with retryPolicy it lasts for days.
// River stores the number in a smallint.
const retryForever = 32000

// worker runs the jobs of one kind.
type worker[T river.JobArgs] struct {
	river.WorkerDefaults[T]
	timeout time.Duration // 0: the client's
	work    func(ctx context.Context, args T) error
}

func addWorker[T river.JobArgs](all *river.Workers, timeout time.Duration,
	work func(context.Context, T) error) error {
	return river.AddWorkerSafely(all, &worker[T]{timeout: timeout, work: work})
}

// Work implements river.Worker.
func (w *worker[T]) Work(ctx context.Context, job *river.Job[T]) error {
	return w.work(withCompletion(ctx, job), job.Args)
}

// Timeout implements river.Worker. A job that is cut off runs again: every use case may be repeated.
func (w *worker[T]) Timeout(*river.Job[T]) time.Duration { return w.timeout }

// NextRetry implements river.Worker: soon at first and then every half minute. Jobs with few attempts keep
// River's policy.
func (w *worker[T]) NextRetry(job *river.Job[T]) time.Time {
	if job.MaxAttempts < periodicAttempts {
		return time.Time{}
	}
	policy := backoff.Policy{Min: 2 * time.Second, Max: 30 * time.Second}
	return time.Now().Add(policy.Delay(job.Attempt))
}

// toRiverResult tells River what became of work for a shop. Work for a shop that is closed, disabled or gone
// is cancelled: what is missing is found when the shop comes back. What the provider rejects is not asked for
// again.
func toRiverResult(snooze time.Duration, err error) error {
	switch {
	case errors.Is(err, shop.ErrClosed), errors.Is(err, shop.ErrDisabled),
		errors.As(err, new(*provider.RequestRejected)), fault.Is(err, fault.NotFound):
		return river.JobCancel(err)
	case err != nil:
		return err
	case snooze > 0:
		return river.JobSnooze(snooze)
	}
	return nil
}

// completionKey is the context key of the function that completes the running job.
type completionKey struct{}

// CompleteTx completes the running job in a transaction. It does nothing in a context without a job.
func (i *Inserter) CompleteTx(ctx context.Context, tx pgx.Tx) error {
	complete, ok := ctx.Value(completionKey{}).(func(context.Context, pgx.Tx) error)
	if !ok {
		return nil
	}
	if err := complete(ctx, tx); err != nil {
		return fmt.Errorf("complete job: %w", err)
	}
	return nil
}

// withCompletion returns a context in which CompleteTx completes the job. A job that was given to another
// worker in the meantime is left to that worker.
func withCompletion[T river.JobArgs](ctx context.Context, job *river.Job[T]) context.Context {
	return context.WithValue(ctx, completionKey{}, func(ctx context.Context, tx pgx.Tx) error {
		_, err := river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, job)
		if errors.Is(err, rivertype.ErrNotFound) {
			return nil
		}
		return err
	})
}
