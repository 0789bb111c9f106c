package jobs

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"storefront.internal/control/internal/bootstrap"
	"storefront.internal/control/internal/installation"
	"storefront.internal/control/internal/observation"
	"storefront.internal/shared/catalog"
	"storefront.internal/shared/ident"
)

// Inserter enqueues jobs, each in the transaction that causes it.
type Inserter struct{ client *river.Client[pgx.Tx] }

// NewInserter returns an Inserter; it runs no job.
func NewInserter(pool *pgxpool.Pool, logger *slog.Logger) (*Inserter, error) {
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{Schema: Schema, Logger: quiet(logger)})
	if err != nil {
		return nil, fmt.Errorf("job inserter: %w", err)
	}
	return &Inserter{client: client}, nil
}

func (i *Inserter) insert(ctx context.Context, tx pgx.Tx, all ...river.JobArgs) error {
	if len(all) == 0 {
		return nil
	}
	params := make([]river.InsertManyParams, 0, len(all))
	for _, args := range all {
		params = append(params, river.InsertManyParams{Args: args})
	}
	if _, err := i.client.InsertManyTx(ctx, tx, params); err != nil {
		return fmt.Errorf("enqueue %s: %w", all[0].Kind(), err)
	}
	return nil
}

// itemsPerPush is how many items one job pushes.
const itemsPerPush = 500

// EnqueueItemPush enqueues the push of items to Redis.
func (i *Inserter) EnqueueItemPush(ctx context.Context, tx pgx.Tx, c ident.ConnectionID,
	items []ident.ItemID) error {
	var all []river.JobArgs
	for some := range slices.Chunk(items, itemsPerPush) {
		all = append(all, itemPush{c, some})
	}
	return i.insert(ctx, tx, all...)
}

// EnqueueRecompose enqueues new bodies for the items of changed categories.
func (i *Inserter) EnqueueRecompose(ctx context.Context, tx pgx.Tx, c ident.ConnectionID,
	nodes []catalog.TaxonomyID) error {
	return i.insert(ctx, tx, recompose{c, nodes})
}

// EnqueueRefresh enqueues the fetch of entities of a connection. The transaction holds the rows of the
// entities, which are marked.
func (i *Inserter) EnqueueRefresh(ctx context.Context, tx pgx.Tx, c ident.ConnectionID,
	keys ...observation.Key) error {
	all := make([]river.JobArgs, 0, len(keys))
	for _, key := range keys {
		all = append(all, refresh{c, key.Entity, key.ExternalID})
	}
	return i.insert(ctx, tx, all...)
}

// EnqueueShopCheck enqueues the check of shops. uninstalled says that the provider told of an uninstallation.
func (i *Inserter) EnqueueShopCheck(ctx context.Context, tx pgx.Tx, uninstalled bool,
	shops ...ident.ConnectionID) error {
	all := make([]river.JobArgs, 0, len(shops))
	for _, c := range shops {
		all = append(all, shopCheck{ConnectionID: c, Uninstalled: uninstalled})
	}
	return i.insert(ctx, tx, all...)
}

// EnqueuePeriodicChecks enqueues the check of shops that are checked again and again.
func (i *Inserter) EnqueuePeriodicChecks(ctx context.Context, tx pgx.Tx, shops ...ident.ConnectionID) error {
	all := make([]river.JobArgs, 0, len(shops))
	for _, c := range shops {
		all = append(all, shopCheck{ConnectionID: c, Periodic: true})
	}
	return i.insert(ctx, tx, all...)
}

// EnqueueSubscriptionChecks enqueues the check of the subscriptions of shops.
func (i *Inserter) EnqueueSubscriptionChecks(ctx context.Context, tx pgx.Tx,
	shops ...ident.ConnectionID) error {
	all := make([]river.JobArgs, 0, len(shops))
	for _, c := range shops {
		all = append(all, subscriptionCheck{c})
	}
	return i.insert(ctx, tx, all...)
}

// EnqueueCatchUp enqueues the catch-up of shops.
func (i *Inserter) EnqueueCatchUp(ctx context.Context, tx pgx.Tx, shops ...ident.ConnectionID) error {
	all := make([]river.JobArgs, 0, len(shops))
	for _, c := range shops {
		all = append(all, catchUp{c})
	}
	return i.insert(ctx, tx, all...)
}

// EnqueueBootstrap enqueues the work of bootstrap runs; a run that has its job gets no other.
func (i *Inserter) EnqueueBootstrap(ctx context.Context, tx pgx.Tx, u bootstrap.Urgency,
	runs ...ident.RunID) error {
	all := make([]river.JobArgs, 0, len(runs))
	for _, id := range runs {
		all = append(all, bootstrapRun{id, u})
	}
	return i.insert(ctx, tx, all...)
}

// EnqueuePrivacyRequest enqueues the execution of a privacy request.
func (i *Inserter) EnqueuePrivacyRequest(ctx context.Context, tx pgx.Tx, id ident.WebhookEventID) error {
	return i.insert(ctx, tx, privacyRequest{id})
}

// EnqueueInstallations enqueues sagas; a saga that has its job gets no other, and the job keeps its time.
func (i *Inserter) EnqueueInstallations(ctx context.Context, tx pgx.Tx, sagas ...installation.Ref) error {
	all := make([]river.JobArgs, 0, len(sagas))
	for _, s := range sagas {
		all = append(all, installationSaga{InstallationID: s.ID, Epoch: s.Epoch})
	}
	return i.insert(ctx, tx, all...)
}

// WakeInstallation makes the job of a saga due now; a saga without a job gets one. A job that runs may have
// made its last step already and be about to sleep: a second job runs once, whatever the first one does.
func (i *Inserter) WakeInstallation(ctx context.Context, tx pgx.Tx, s installation.Ref) error {
	job, err := i.retrySaga(ctx, tx, installationSaga{InstallationID: s.ID, Epoch: s.Epoch})
	if err == nil && job.State == rivertype.JobStateRunning {
		_, err = i.retrySaga(ctx, tx, installationSaga{InstallationID: s.ID, Epoch: s.Epoch,
			BesideAttempt: job.Attempt})
	}
	if err != nil {
		return fmt.Errorf("wake installation: %w", err)
	}
	return nil
}

// retrySaga inserts a job or, where it exists, makes it due now, which changes nothing if it runs.
func (i *Inserter) retrySaga(ctx context.Context, tx pgx.Tx, a installationSaga) (*rivertype.JobRow, error) {
	inserted, err := i.client.InsertTx(ctx, tx, a, nil)
	if err != nil {
		return nil, err
	}
	if inserted.UniqueSkippedAsDuplicate {
		return i.client.JobRetryTx(ctx, tx, inserted.Job.ID)
	}
	return inserted.Job, nil
}
