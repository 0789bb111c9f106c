package jobs

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"storefront.internal/shared/ident"
)

// Loads have a queue of their own, so that notifications do not wait for them.
const (
	queueLoad   = "shop_load"
	loadWorkers = 4
)

// resumeEvery is how often runs that nobody works are looked for.
const resumeEvery = 15 * time.Second

// Loader works runs and catches up with shops; it may be asked at any time and repeatedly.
type Loader interface {
	Load(ctx context.Context, id ident.RunID) (again time.Duration, err error)
	CatchUp(ctx context.Context, c ident.ConnectionID) (again time.Duration, err error)
}

// Sweeper finds loads and shops that are to be worked.
type Sweeper interface {
	ResumeLoads(ctx context.Context) error
	// RequestCatchUps enqueues the catch-up of every shop, or its load when the last one is older than reload.
	RequestCatchUps(ctx context.Context, reload time.Duration) error
}

type load struct {
	RunID ident.RunID `json:"bootstrap_run_id"`
}

// Kind implements river.JobArgs.
func (load) Kind() string { return "bootstrap_load" }

// InsertOpts implements river.JobArgsWithInsertOpts.
func (load) InsertOpts() river.InsertOpts {
	return river.InsertOpts{MaxAttempts: pushAttempts, Queue: queueLoad}
}

// EnqueueLoad enqueues a run with the transaction that opens it.
func (i *Inserter) EnqueueLoad(ctx context.Context, tx pgx.Tx, id ident.RunID) error {
	if _, err := i.client.InsertTx(ctx, tx, load{id}, nil); err != nil {
		return fmt.Errorf("enqueue load: %w", err)
	}
	return nil
}

type loadWorker struct {
	river.WorkerDefaults[load]
	loader Loader
}

// Work implements river.Worker.
func (w *loadWorker) Work(ctx context.Context, job *river.Job[load]) error {
	return worked(w.loader.Load(ctx, job.Args.RunID))
}

// Timeout implements river.Worker.
func (w *loadWorker) Timeout(*river.Job[load]) time.Duration { return longTimeout }

// NextRetry implements river.Worker.
func (w *loadWorker) NextRetry(job *river.Job[load]) time.Time { return nextPush(job.Attempt) }

type catchUp struct {
	ConnectionID ident.ConnectionID `json:"connection_id"`
}

// Kind implements river.JobArgs.
func (catchUp) Kind() string { return "catch_up" }

// InsertOpts implements river.JobArgsWithInsertOpts. There is one of a shop at a time: what one that runs does not find any
// more is found by the next, which comes by itself and begins well before this one.
func (catchUp) InsertOpts() river.InsertOpts {
	return river.InsertOpts{MaxAttempts: 5, Queue: queueLoad, UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: []rivertype.JobState{
		rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRunning, rivertype.JobStateRetryable, rivertype.JobStateScheduled,
	}}}
}

// EnqueueCatchUp enqueues the reading of what was updated in a shop.
func (i *Inserter) EnqueueCatchUp(ctx context.Context, tx pgx.Tx, c ident.ConnectionID) error {
	if _, err := i.client.InsertTx(ctx, tx, catchUp{c}, nil); err != nil {
		return fmt.Errorf("enqueue catch-up: %w", err)
	}
	return nil
}

type catchUpWorker struct {
	river.WorkerDefaults[catchUp]
	loader Loader
}

// Work implements river.Worker.
func (w *catchUpWorker) Work(ctx context.Context, job *river.Job[catchUp]) error {
	return worked(w.loader.CatchUp(ctx, job.Args.ConnectionID))
}

// Timeout implements river.Worker.
func (w *catchUpWorker) Timeout(*river.Job[catchUp]) time.Duration { return longTimeout }

type resumeLoads struct{}

// Kind implements river.JobArgs.
func (resumeLoads) Kind() string { return "resume_loads" }

// InsertOpts implements river.JobArgsWithInsertOpts. The next one comes by itself.
func (resumeLoads) InsertOpts() river.InsertOpts { return river.InsertOpts{MaxAttempts: 1} }

type resumeLoadsWorker struct {
	river.WorkerDefaults[resumeLoads]
	sweeper Sweeper
}

// Work implements river.Worker.
func (w *resumeLoadsWorker) Work(ctx context.Context, _ *river.Job[resumeLoads]) error {
	return w.sweeper.ResumeLoads(ctx)
}

type catchUps struct{}

// Kind implements river.JobArgs.
func (catchUps) Kind() string { return "catch_ups" }

// InsertOpts implements river.JobArgsWithInsertOpts. The next one comes by itself.
func (catchUps) InsertOpts() river.InsertOpts { return river.InsertOpts{MaxAttempts: 1} }

type catchUpsWorker struct {
	river.WorkerDefaults[catchUps]
	sweeper Sweeper
	reload  time.Duration
}

// Work implements river.Worker.
func (w *catchUpsWorker) Work(ctx context.Context, _ *river.Job[catchUps]) error {
	return w.sweeper.RequestCatchUps(ctx, w.reload)
}
