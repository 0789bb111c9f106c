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

	"storefront.internal/control/internal/observation"
	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/shop"
	"storefront.internal/shared/catalog"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
)

// What providers are asked waits for them: it has queues of its own.
const (
	queueRefresh   = "entity_refresh"
	refreshWorkers = 16
)

// Refresher fetches a marked entity. When nothing is left to do it completes the job in its own transaction, by
// CompleteTx, and returns 0.
type Refresher interface {
	Refresh(ctx context.Context, c ident.ConnectionID, key observation.Key) (again time.Duration, err error)
}

// refresh fetches one entity of a provider.
type refresh struct {
	ConnectionID ident.ConnectionID `json:"connection_id"`
	Entity       catalog.Entity     `json:"entity"`
	ExternalID   string             `json:"external_id"`
}

// Kind implements river.JobArgs.
func (refresh) Kind() string { return "entity_refresh" }

// InsertOpts implements river.JobArgsWithInsertOpts. There is one job of an entity at a time, the running one counted:
// marks that come meanwhile are seen by it. A completed one is out of the way at once, since it completes in the
// transaction that compares the mark.
func (refresh) InsertOpts() river.InsertOpts {
	return river.InsertOpts{MaxAttempts: pushAttempts, Queue: queueRefresh, UniqueOpts: river.UniqueOpts{
		ByArgs: true, ByState: []rivertype.JobState{
			rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRunning,
			rivertype.JobStateRetryable, rivertype.JobStateScheduled,
		},
	}}
}

// EnqueueRefresh enqueues the fetch of an entity with the transaction that marks it and holds its row.
func (i *Inserter) EnqueueRefresh(ctx context.Context, tx pgx.Tx, c ident.ConnectionID, key observation.Key) error {
	if _, err := i.client.InsertTx(ctx, tx, refresh{c, key.Entity, key.ExternalID}, nil); err != nil {
		return fmt.Errorf("enqueue refresh: %w", err)
	}
	return nil
}

// current is the key under which a worker's context carries how its job completes.
type current struct{}

// CompleteTx completes the job of the context with a transaction. A context without a job has nothing to complete.
func (i *Inserter) CompleteTx(ctx context.Context, tx pgx.Tx) error {
	complete, ok := ctx.Value(current{}).(func(context.Context, pgx.Tx) error)
	if !ok {
		return nil
	}
	if err := complete(ctx, tx); err != nil {
		return fmt.Errorf("complete job: %w", err)
	}
	return nil
}

// completing returns a context with which CompleteTx completes the job. One that is not running any more, because it was
// given to another worker, has nothing to complete.
func completing[T river.JobArgs](ctx context.Context, job *river.Job[T]) context.Context {
	return context.WithValue(ctx, current{}, func(ctx context.Context, tx pgx.Tx) error {
		_, err := river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, job)
		if errors.Is(err, rivertype.ErrNotFound) {
			return nil
		}
		return err
	})
}

type refreshWorker struct {
	river.WorkerDefaults[refresh]
	entities Refresher
}

// Work implements river.Worker.
func (w *refreshWorker) Work(ctx context.Context, job *river.Job[refresh]) error {
	key := observation.Key{Entity: job.Args.Entity, ExternalID: job.Args.ExternalID}
	return worked(w.entities.Refresh(completing(ctx, job), job.Args.ConnectionID, key))
}

// NextRetry implements river.Worker.
func (w *refreshWorker) NextRetry(job *river.Job[refresh]) time.Time { return nextPush(job.Attempt) }

// worked tells River what became of work for a shop. What is left undone of a shop that is closed, or is not there, is
// found when it comes back; what the provider rejects is not asked for once more.
func worked(again time.Duration, err error) error {
	switch {
	case errors.Is(err, shop.ErrClosed), errors.As(err, new(*provider.Rejected)), fault.Is(err, fault.NotFound):
		return river.JobCancel(err)
	case err != nil:
		return err
	case again > 0:
		return river.JobSnooze(again)
	}
	return nil
}
