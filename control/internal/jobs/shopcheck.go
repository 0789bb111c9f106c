package jobs

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"storefront.internal/shared/ident"
)

// ShopChecker asks a provider whether a shop may be called and makes the connection's state say so.
type ShopChecker interface {
	Check(ctx context.Context, c ident.ConnectionID, uninstalled bool) (again time.Duration, err error)
}

// shopCheck is enqueued for each reason to doubt. It has no mark, so it is not unique.
type shopCheck struct {
	ConnectionID ident.ConnectionID `json:"connection_id"`
	Uninstalled  bool               `json:"uninstalled"` // so the provider said
}

// Kind implements river.JobArgs.
func (shopCheck) Kind() string { return "shop_check" }

// InsertOpts implements river.JobArgsWithInsertOpts.
func (shopCheck) InsertOpts() river.InsertOpts {
	return river.InsertOpts{MaxAttempts: pushAttempts, Queue: queueRefresh}
}

// EnqueueShopCheck enqueues the check of a shop.
func (i *Inserter) EnqueueShopCheck(ctx context.Context, tx pgx.Tx, c ident.ConnectionID, uninstalled bool) error {
	if _, err := i.client.InsertTx(ctx, tx, shopCheck{c, uninstalled}, nil); err != nil {
		return fmt.Errorf("enqueue shop check: %w", err)
	}
	return nil
}

type shopCheckWorker struct {
	river.WorkerDefaults[shopCheck]
	shops ShopChecker
}

// Work implements river.Worker.
func (w *shopCheckWorker) Work(ctx context.Context, job *river.Job[shopCheck]) error {
	return worked(w.shops.Check(ctx, job.Args.ConnectionID, job.Args.Uninstalled))
}

// NextRetry implements river.Worker.
func (w *shopCheckWorker) NextRetry(job *river.Job[shopCheck]) time.Time {
	return nextPush(job.Attempt)
}
