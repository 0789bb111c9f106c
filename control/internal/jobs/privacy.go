package jobs

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"storefront.internal/shared/ident"
)

// PrivacyExecutor does what a provider asked about people's data; it may be asked at any time and repeatedly.
type PrivacyExecutor interface {
	Execute(ctx context.Context, id ident.DeliveryID) error
}

type privacyRequest struct {
	RequestID ident.DeliveryID `json:"privacy_request_id"`
}

// Kind implements river.JobArgs.
func (privacyRequest) Kind() string { return "privacy_request" }

// InsertOpts implements river.JobArgsWithInsertOpts.
func (privacyRequest) InsertOpts() river.InsertOpts {
	return river.InsertOpts{MaxAttempts: pushAttempts}
}

// EnqueuePrivacyRequest enqueues a request with the transaction that writes it down.
func (i *Inserter) EnqueuePrivacyRequest(ctx context.Context, tx pgx.Tx, id ident.DeliveryID) error {
	if _, err := i.client.InsertTx(ctx, tx, privacyRequest{id}, nil); err != nil {
		return fmt.Errorf("enqueue privacy request: %w", err)
	}
	return nil
}

type privacyWorker struct {
	river.WorkerDefaults[privacyRequest]
	requests PrivacyExecutor
}

// Work implements river.Worker.
func (w *privacyWorker) Work(ctx context.Context, job *river.Job[privacyRequest]) error {
	return w.requests.Execute(ctx, job.Args.RequestID)
}

// Timeout implements river.Worker. A request that is ended begins anew and finds what it did done.
func (w *privacyWorker) Timeout(*river.Job[privacyRequest]) time.Duration { return longTimeout }

// NextRetry implements river.Worker.
func (w *privacyWorker) NextRetry(job *river.Job[privacyRequest]) time.Time {
	return nextPush(job.Attempt)
}
