package jobs

import (
	"context"
	"time"

	"github.com/riverqueue/river"

	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
)

// KeyPusher tells Redis what is true of a key; it may be asked at any time and repeatedly.
type KeyPusher interface {
	Push(ctx context.Context, k ident.KeyID) error
}

// keyPush repeats the push of a key until it succeeds.
type keyPush struct {
	KeyID ident.KeyID `json:"api_key_id"`
}

// Kind implements river.JobArgs.
func (keyPush) Kind() string { return "key_push" }

// pushAttempts at maxPushWait are two weeks: an outage of Redis that a push outlives.
const (
	pushAttempts = 32000
	maxPushWait  = 30 * time.Second
)

// InsertOpts implements river.JobArgsWithInsertOpts.
func (keyPush) InsertOpts() river.InsertOpts { return river.InsertOpts{MaxAttempts: pushAttempts} }

type keyPushWorker struct {
	river.WorkerDefaults[keyPush]
	keys KeyPusher
}

// Work implements river.Worker.
func (w *keyPushWorker) Work(ctx context.Context, job *river.Job[keyPush]) error {
	err := w.keys.Push(ctx, job.Args.KeyID)
	if fault.Is(err, fault.NotFound) {
		return river.JobCancel(err)
	}
	return err
}

// Timeout implements river.Worker.
func (w *keyPushWorker) Timeout(*river.Job[keyPush]) time.Duration { return 10 * time.Second }

// NextRetry implements river.Worker: soon at first, since edges ask PostgreSQL until the push succeeds.
func (w *keyPushWorker) NextRetry(job *river.Job[keyPush]) time.Time {
	return nextPush(job.Attempt)
}
