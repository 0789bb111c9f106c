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
	"storefront.internal/shared/crashpoint"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/pg"
)

// CatalogJobs enqueues the work that a change of the catalog causes, in its transaction.
type CatalogJobs interface {
	EnqueueItemPush(ctx context.Context, tx pgx.Tx, c ident.ConnectionID, items []ident.ItemID) error
	EnqueueRecompose(ctx context.Context, tx pgx.Tx, c ident.ConnectionID, nodes []catalog.TaxonomyID) error
	EnqueueShopCheck(ctx context.Context, tx pgx.Tx, c ident.ConnectionID, uninstalled bool) error
	EnqueueCatchUp(ctx context.Context, tx pgx.Tx, c ident.ConnectionID) error
	LoadJobs
	// CompleteTx completes the job of the context.
	CompleteTx(ctx context.Context, tx pgx.Tx) error
}

// Catalog is the part of schema control that holds the archive, the entities, the taxonomy and the aggregates.
//
// Every transaction that writes takes its locks in the order entities, taxonomy nodes, aggregates, each table's by key
// in one pass; rows that are missing are made first, by key too. So no two of them wait for each other.
type Catalog struct {
	pool    *pgxpool.Pool
	jobs    CatalogJobs
	metrics *Metrics
}

// NewCatalog returns a Catalog.
func NewCatalog(pool *pgxpool.Pool, jobs CatalogJobs, m *Metrics) *Catalog {
	return &Catalog{pool: pool, jobs: jobs, metrics: m}
}

// fresh begins transactions whose statements are planned anew each time: a generic plan that was made while a table was
// small would read all of it, and planning costs nothing beside hundreds of rows.
type fresh struct{ pool *pgxpool.Pool }

// BeginTx implements pg.Beginner.
func (f fresh) BeginTx(ctx context.Context, opts pgx.TxOptions) (pgx.Tx, error) {
	opts.BeginQuery = "BEGIN; SET LOCAL plan_cache_mode = force_custom_plan"
	return f.pool.BeginTx(ctx, opts)
}

// inTx repeats what a deadlock ended, which the order of locks rules out; so each repetition is counted.
func (c *Catalog) inTx(ctx context.Context, fn func(pgx.Tx) error) error {
	first := true
	return pg.RetryTx(ctx, fresh{c.pool}, func(tx pgx.Tx) error {
		if !first {
			c.metrics.retries.Inc()
		}
		first = false
		return fn(tx)
	})
}

// Apply implements observation.Store.
func (c *Catalog) Apply(ctx context.Context, b *observation.Batch) (outcomes []observation.Outcome, err error) {
	err = c.inTx(ctx, func(tx pgx.Tx) error {
		outcomes, err = c.apply(ctx, tx, b)
		crashpoint.Hit(crashpoint.ObserveBeforeCommit)
		return err
	})
	if err == nil {
		crashpoint.Hit(crashpoint.ObserveAfterCommit)
	}
	return outcomes, Translate("apply observations", err)
}

func (c *Catalog) apply(ctx context.Context, tx pgx.Tx, b *observation.Batch) ([]observation.Outcome, error) {
	if b.Replays != "" {
		if err := holdQuarantined(ctx, tx, b); err != nil {
			return nil, err
		}
	}
	applied, err := lockEntities(ctx, tx, b.Source.ConnectionID, b.Keys())
	if err != nil {
		return nil, err
	}
	before := maps.Clone(applied)
	outcomes := b.Fold(applied)
	plan := b.Plan(outcomes)
	var effects observation.Effects
	if !plan.Empty() {
		locked, hung, err := lockPlan(ctx, tx, b.Source.ConnectionID, plan)
		if err != nil {
			return nil, err
		}
		if effects, err = plan.Effects(locked); err != nil {
			return nil, err
		}
		if err := c.enqueueJobs(ctx, tx, b.Source.ConnectionID, &effects, hung); err != nil {
			return nil, err
		}
	}
	return outcomes, c.write(ctx, tx, b, outcomes, before, applied, &effects)
}

// enqueueJobs enqueues the push of the items, and the new composition of the items that hang from changed nodes.
func (c *Catalog) enqueueJobs(ctx context.Context, tx pgx.Tx, conn ident.ConnectionID, e *observation.Effects, hung []catalog.TaxonomyID) error {
	var nodes []catalog.TaxonomyID
	for _, id := range hung {
		if _, changed := e.Nodes[id]; changed {
			nodes = append(nodes, id)
		}
	}
	if len(nodes) > 0 {
		if err := c.jobs.EnqueueRecompose(ctx, tx, conn, nodes); err != nil {
			return err
		}
	}
	if len(e.Aggregates) == 0 {
		return nil
	}
	items := make([]ident.ItemID, 0, len(e.Aggregates))
	for i := range e.Aggregates {
		items = append(items, e.Aggregates[i].ItemID)
	}
	for some := range slices.Chunk(items, chunk) {
		if err := c.jobs.EnqueueItemPush(ctx, tx, conn, some); err != nil {
			return err
		}
	}
	return nil
}

const holdQuarantinedRow = `
SELECT true
FROM control.observations
WHERE observation_id = $1 AND minted_at = $2 AND connection_id = $3 AND state = 'quarantined'
FOR UPDATE`

// holdQuarantined locks the observation that a batch replays; two replays of one come one after the other.
func holdQuarantined(ctx context.Context, tx pgx.Tx, b *observation.Batch) error {
	var held bool
	err := tx.QueryRow(ctx, holdQuarantinedRow, b.Replays, mintedAt(b.Replays), b.Source.ConnectionID).Scan(&held)
	if errors.Is(err, pgx.ErrNoRows) {
		return fault.New(fault.NotFound, "There is no such observation in the quarantine.")
	}
	return err
}

// mintedAt leads to the partition of an observation. What is no id of ours leads to a day without any.
func mintedAt(id ident.ObservationID) time.Time {
	at, _ := ident.MintedAt(string(id))
	return at
}
