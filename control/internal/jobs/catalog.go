package jobs

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"storefront.internal/shared/catalog"
	"storefront.internal/shared/ident"
)

// The catalog's jobs have queues of their own, so that a first load of a shop does not keep keys from being pushed.
const (
	queuePush      = "catalog_push"
	queueRecompose = "catalog_recompose"
)

// ItemPusher tells Redis what items look like; it may be asked at any time and repeatedly.
type ItemPusher interface {
	Push(ctx context.Context, c ident.ConnectionID, items []ident.ItemID) error
}

// Recomposer gives the items under changed nodes new bodies; it may be asked at any time and repeatedly.
type Recomposer interface {
	Recompose(ctx context.Context, c ident.ConnectionID, nodes []catalog.TaxonomyID) error
}

// itemPush pushes the items that one transaction changed.
type itemPush struct {
	ConnectionID ident.ConnectionID `json:"connection_id"`
	ItemIDs      []ident.ItemID     `json:"item_ids"`
}

// Kind implements river.JobArgs. The store measures how long jobs of this kind wait.
func (itemPush) Kind() string { return "item_push" }

// InsertOpts implements river.JobArgsWithInsertOpts.
func (itemPush) InsertOpts() river.InsertOpts {
	return river.InsertOpts{MaxAttempts: pushAttempts, Queue: queuePush}
}

// EnqueueItemPush enqueues the push of items with the transaction that changes them.
func (i *Inserter) EnqueueItemPush(ctx context.Context, tx pgx.Tx, c ident.ConnectionID, items []ident.ItemID) error {
	if _, err := i.client.InsertTx(ctx, tx, itemPush{c, items}, nil); err != nil {
		return fmt.Errorf("enqueue item push: %w", err)
	}
	return nil
}

type itemPushWorker struct {
	river.WorkerDefaults[itemPush]
	items ItemPusher
}

// Work implements river.Worker.
func (w *itemPushWorker) Work(ctx context.Context, job *river.Job[itemPush]) error {
	return w.items.Push(ctx, job.Args.ConnectionID, job.Args.ItemIDs)
}

// NextRetry implements river.Worker.
func (w *itemPushWorker) NextRetry(job *river.Job[itemPush]) time.Time { return nextPush(job.Attempt) }

// recompose follows changed categories.
type recompose struct {
	ConnectionID ident.ConnectionID   `json:"connection_id"`
	TaxonomyIDs  []catalog.TaxonomyID `json:"taxonomy_ids"`
}

// Kind implements river.JobArgs.
func (recompose) Kind() string { return "item_recompose" }

// InsertOpts implements river.JobArgsWithInsertOpts.
func (recompose) InsertOpts() river.InsertOpts {
	return river.InsertOpts{MaxAttempts: pushAttempts, Queue: queueRecompose}
}

// EnqueueRecompose enqueues the new composition of the items under nodes with the transaction that changes the nodes.
func (i *Inserter) EnqueueRecompose(ctx context.Context, tx pgx.Tx, c ident.ConnectionID, nodes []catalog.TaxonomyID) error {
	if _, err := i.client.InsertTx(ctx, tx, recompose{c, nodes}, nil); err != nil {
		return fmt.Errorf("enqueue recompose: %w", err)
	}
	return nil
}

type recomposeWorker struct {
	river.WorkerDefaults[recompose]
	items Recomposer
}

// Work implements river.Worker.
func (w *recomposeWorker) Work(ctx context.Context, job *river.Job[recompose]) error {
	return w.items.Recompose(ctx, job.Args.ConnectionID, job.Args.TaxonomyIDs)
}

// Timeout implements river.Worker. A job that is ended begins anew and finds what it did done.
func (w *recomposeWorker) Timeout(*river.Job[recompose]) time.Duration {
	return longTimeout
}

// NextRetry implements river.Worker.
func (w *recomposeWorker) NextRetry(job *river.Job[recompose]) time.Time {
	return nextPush(job.Attempt)
}

// nextPush is soon at first and then every half minute.
func nextPush(attempt int) time.Time {
	wait := maxPushWait
	if attempt < 5 {
		wait = time.Second << attempt
	}
	return time.Now().Add(wait/2 + rand.N(wait/2))
}
