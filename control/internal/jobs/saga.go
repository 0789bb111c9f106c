package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"storefront.internal/shared/ident"
)

// Installations have a queue of their own: they wait for providers.
const (
	queueInstall   = "installation"
	installWorkers = 8
	installTimeout = longTimeout
)

// How often sagas whose runner died are looked for, how long an attempt is overdue then, and how often subscriptions
// that are due are swept and secrets under older keys are sealed anew.
const (
	wakeEvery   = 10 * time.Second
	wakeOverdue = 15 * time.Second
	sweepEvery  = 5 * time.Minute
	resealEvery = 10 * time.Minute
)

// SagaRunner takes an installation on; it may be asked at any time and repeatedly. The saga's own row counts its
// attempts and says when the next one is due, so a job fails only when the store is away.
type SagaRunner interface {
	Run(ctx context.Context, id ident.InstallationID, epoch int) (again time.Duration, err error)
}

// SagaWaker enqueues sagas that nobody takes on.
type SagaWaker interface {
	WakeSagas(ctx context.Context, overdue time.Duration) (int, error)
}

// SubscriptionSweeper mends the subscriptions that are due.
type SubscriptionSweeper interface {
	Sweep(ctx context.Context) error
}

// Resealer seals secrets anew that are under an older key.
type Resealer interface {
	Reseal(ctx context.Context) error
}

// InstallWork is what installations and sealed secrets need.
type InstallWork struct {
	Runner  SagaRunner
	Waker   SagaWaker
	Sweeper SubscriptionSweeper
	Seals   Resealer
}

// add adds the workers. Without installations there are none.
func (w *InstallWork) add(all *river.Workers) error {
	if w == nil {
		return nil
	}
	return errors.Join(
		river.AddWorkerSafely(all, &sagaWorker{runner: w.Runner}),
		river.AddWorkerSafely(all, &wakeWorker{waker: w.Waker}),
		river.AddWorkerSafely(all, &sweepWorker{sweeper: w.Sweeper}),
		river.AddWorkerSafely(all, &resealWorker{seals: w.Seals}),
	)
}

func (w *InstallWork) periodic() []*river.PeriodicJob {
	if w == nil {
		return nil
	}
	every := func(interval time.Duration, args river.JobArgs) *river.PeriodicJob {
		return river.NewPeriodicJob(river.PeriodicInterval(interval),
			func() (river.JobArgs, *river.InsertOpts) { return args, nil }, &river.PeriodicJobOpts{RunOnStart: true})
	}
	return []*river.PeriodicJob{every(wakeEvery, wake{}), every(sweepEvery, sweep{}), every(resealEvery, reseal{})}
}

// saga takes an installation on. It carries no more than what to look up.
type saga struct {
	InstallationID ident.InstallationID `json:"installation_id"`
	Epoch          int                  `json:"epoch"`
}

// Kind implements river.JobArgs.
func (saga) Kind() string { return "installation_saga" }

// InsertOpts implements river.JobArgsWithInsertOpts.
func (saga) InsertOpts() river.InsertOpts {
	return river.InsertOpts{MaxAttempts: pushAttempts, Queue: queueInstall}
}

// EnqueueSaga enqueues an installation with the transaction that opens it.
func (i *Inserter) EnqueueSaga(ctx context.Context, tx pgx.Tx, id ident.InstallationID, epoch int) error {
	if _, err := i.client.InsertTx(ctx, tx, saga{id, epoch}, nil); err != nil {
		return fmt.Errorf("enqueue saga: %w", err)
	}
	return nil
}

type sagaWorker struct {
	river.WorkerDefaults[saga]
	runner SagaRunner
}

// Work implements river.Worker.
func (w *sagaWorker) Work(ctx context.Context, job *river.Job[saga]) error {
	again, err := w.runner.Run(ctx, job.Args.InstallationID, job.Args.Epoch)
	if err == nil && again > 0 {
		return river.JobSnooze(again)
	}
	return err
}

// Timeout implements river.Worker.
func (w *sagaWorker) Timeout(*river.Job[saga]) time.Duration { return installTimeout }

// NextRetry implements river.Worker.
func (w *sagaWorker) NextRetry(job *river.Job[saga]) time.Time { return nextPush(job.Attempt) }

type wake struct{}

// Kind implements river.JobArgs.
func (wake) Kind() string { return "installation_wake" }

// InsertOpts implements river.JobArgsWithInsertOpts. The next one comes by itself.
func (wake) InsertOpts() river.InsertOpts { return river.InsertOpts{MaxAttempts: 1} }

type wakeWorker struct {
	river.WorkerDefaults[wake]
	waker SagaWaker
}

// Work implements river.Worker.
func (w *wakeWorker) Work(ctx context.Context, _ *river.Job[wake]) error {
	_, err := w.waker.WakeSagas(ctx, wakeOverdue)
	return err
}

type sweep struct{}

// Kind implements river.JobArgs.
func (sweep) Kind() string { return "subscription_sweep" }

// InsertOpts implements river.JobArgsWithInsertOpts. The next one comes by itself.
func (sweep) InsertOpts() river.InsertOpts {
	return river.InsertOpts{MaxAttempts: 1, Queue: queueInstall}
}

type sweepWorker struct {
	river.WorkerDefaults[sweep]
	sweeper SubscriptionSweeper
}

// Work implements river.Worker. What it does not come to is taken by the next one.
func (w *sweepWorker) Work(ctx context.Context, _ *river.Job[sweep]) error {
	return w.sweeper.Sweep(ctx)
}

// Timeout implements river.Worker.
func (w *sweepWorker) Timeout(*river.Job[sweep]) time.Duration { return installTimeout }

type reseal struct{}

// Kind implements river.JobArgs.
func (reseal) Kind() string { return "secret_reseal" }

// InsertOpts implements river.JobArgsWithInsertOpts. The next one comes by itself.
func (reseal) InsertOpts() river.InsertOpts { return river.InsertOpts{MaxAttempts: 1} }

type resealWorker struct {
	river.WorkerDefaults[reseal]
	seals Resealer
}

// Work implements river.Worker.
func (w *resealWorker) Work(ctx context.Context, _ *river.Job[reseal]) error {
	return w.seals.Reseal(ctx)
}

// Timeout implements river.Worker.
func (w *resealWorker) Timeout(*river.Job[reseal]) time.Duration { return installTimeout }
