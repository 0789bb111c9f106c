package postgres

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"storefront.internal/control/internal/observation"
	"storefront.internal/shared/catalog"
	"storefront.internal/shared/failpoint"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/pg"
)

// Catalog is the part of schema control that holds the entities, the taxonomy and the aggregates.
//
// Every writing transaction takes its locks in the order entities, taxonomy nodes, aggregates, and within a
// table by key in one pass; missing rows are inserted first, by key too. Observations in the quarantine are
// locked behind their entity. So no two of them deadlock.
type Catalog struct {
	pool    *pgxpool.Pool
	jobs    Jobs
	metrics *Metrics
}

// NewCatalog returns a Catalog.
func NewCatalog(pool *pgxpool.Pool, jobs Jobs, m *Metrics) *Catalog {
	return &Catalog{pool: pool, jobs: jobs, metrics: m}
}

// inTx repeats a transaction that a deadlock ended. The order of locks rules deadlocks out, so repetitions
// are counted.
func (c *Catalog) inTx(ctx context.Context, fn func(pgx.Tx) error) error {
	first := true
	return pg.RetryTx(ctx, pg.CustomPlans(c.pool), func(tx pgx.Tx) error {
		if !first {
			c.metrics.retries.Inc()
		}
		first = false
		return fn(tx)
	})
}

// Apply implements observation.Store.
func (c *Catalog) Apply(ctx context.Context,
	b *observation.Batch) (outcomes []observation.Outcome, err error) {
	err = c.inTx(ctx, func(tx pgx.Tx) error {
		outcomes, err = c.apply(ctx, tx, b)
		failpoint.Hit(failpoint.ObserveBeforeCommit)
		return err
	})
	if err == nil {
		failpoint.Hit(failpoint.ObserveAfterCommit)
	}
	return outcomes, Translate("apply observations", err)
}

func (c *Catalog) apply(ctx context.Context, tx pgx.Tx, b *observation.Batch) ([]observation.Outcome, error) {
	applied, err := lockEntities(ctx, tx, b.Source.ConnectionID, b.LockKeys())
	if err != nil {
		return nil, err
	}
	if b.Replays != "" {
		if err := lockQuarantined(ctx, tx, b); err != nil {
			return nil, err
		}
	}
	before := maps.Clone(applied)
	outcomes := b.Fold(applied)
	plan := b.Plan(outcomes)
	var effects observation.Effects
	if !plan.Empty() {
		locked, nodesInUse, err := lockPlan(ctx, tx, b.Source.ConnectionID, plan)
		if err != nil {
			return nil, err
		}
		if effects, err = plan.Effects(locked); err != nil {
			return nil, err
		}
		if err := c.enqueueJobs(ctx, tx, b.Source.ConnectionID, &effects, nodesInUse); err != nil {
			return nil, err
		}
	}
	if err := c.write(ctx, tx, b, outcomes, before, applied, &effects); err != nil {
		return nil, err
	}
	return outcomes, c.fetchAgain(ctx, tx, b, outcomes)
}

// fetchAgain marks the entities of which a fetch could not be compared, and enqueues their fetch.
func (c *Catalog) fetchAgain(ctx context.Context, tx pgx.Tx, b *observation.Batch,
	outcomes []observation.Outcome) error {
	var keys []observation.Key
	for i, o := range outcomes {
		key := b.Elements[i].Key()
		if !o.FetchAgain || slices.Contains(keys, key) {
			continue
		}
		if _, err := tx.Exec(ctx, markEntityDirty, b.Source.ConnectionID, key.Entity,
			key.ExternalID); err != nil {
			return err
		}
		keys = append(keys, key)
	}
	return c.jobs.EnqueueRefresh(ctx, tx, b.Source.ConnectionID, keys...)
}

// enqueueJobs enqueues the push of the changed items, and new bodies for the items of changed nodes that are
// in use.
func (c *Catalog) enqueueJobs(ctx context.Context, tx pgx.Tx, conn ident.ConnectionID, e *observation.Effects,
	nodesInUse []catalog.TaxonomyID) error {
	var nodes []catalog.TaxonomyID
	for _, id := range nodesInUse {
		if _, changed := e.Nodes[id]; changed {
			nodes = append(nodes, id)
		}
	}
	if len(nodes) > 0 {
		if err := c.jobs.EnqueueRecompose(ctx, tx, conn, nodes); err != nil {
			return err
		}
	}
	items := make([]ident.ItemID, 0, len(e.Aggregates))
	for i := range e.Aggregates {
		items = append(items, e.Aggregates[i].ItemID)
	}
	return c.jobs.EnqueueItemPush(ctx, tx, conn, items)
}

const lockQuarantinedRow = `
SELECT true
FROM control.observations
WHERE observation_id = $1 AND minted_at = $2 AND connection_id = $3 AND state = 'quarantined'
FOR UPDATE`

// lockQuarantined locks the observation that a batch replays, so that replays of the same one do not overlap.
func lockQuarantined(ctx context.Context, tx pgx.Tx, b *observation.Batch) error {
	var found bool
	err := tx.QueryRow(ctx, lockQuarantinedRow, b.Replays, mintedAt(b.Replays),
		b.Source.ConnectionID).Scan(&found)
	if errors.Is(err, pgx.ErrNoRows) {
		return fault.New(fault.NotFound, "There is no such observation in the quarantine.")
	}
	return err
}

// mintedAt is the time in an id, which selects the partition. A malformed id selects a day without
// observations.
func mintedAt(id ident.ObservationID) time.Time {
	at, _ := ident.MintedAt(string(id))
	return at
}
