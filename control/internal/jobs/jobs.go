// Package jobs owns control's background work as River jobs. A job is enqueued in the transaction that causes
// it. Its arguments are identifiers and never secrets, since operators see them. Workers hold no rules: each
// calls one use case and tells River when to try again.
//
// River's tables lie in schema control; Migrate creates them and grants control's role what River needs.
package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"storefront.internal/shared/backoff"
)

// Schema is the PostgreSQL schema of River's tables.
const Schema = "control"

// Config is what a Runner is made of.
type Config struct {
	Pool       *pgxpool.Pool
	Keys       KeyPusher
	Items      ItemPusher
	Recomposer Recomposer
	Archive    Archive
	Retention  Retention
	PurgeDead  Purger       // of dead letters; needed with their retention
	PurgeRuns  Purger       // of bootstrap runs; needed with their retention
	Shops      *ShopWork    // nil: no job calls a provider's shop
	Installs   *InstallWork // nil: no job advances installations
	Workers    Workers
	Holder     Holder   // nil: a job that ends its process disables no connection
	Metrics    *Metrics // nil: jobs are not measured
	Logger     *slog.Logger
}

// Runner runs jobs.
type Runner struct{ cfg Config }

// NewRunner returns a Runner.
func NewRunner(cfg Config) *Runner { return &Runner{cfg: cfg} }

// The time between two attempts to start, and the time that running jobs get to end when the Runner stops.
const (
	startEvery  = time.Second
	stopTimeout = 12 * time.Second
)

// Run runs jobs until the context ends, and then waits for those that run. While PostgreSQL is down or lacks
// River's tables, it tries to start again and again.
func (r *Runner) Run(ctx context.Context) error {
	for logged := false; ; {
		client, err := r.start(ctx)
		if err == nil {
			<-ctx.Done()
			return stop(ctx, client)
		}
		if !logged && ctx.Err() == nil {
			logged = true
			r.cfg.Logger.Warn("jobs cannot be started yet", "error", err.Error())
		}
		if backoff.Sleep(ctx, startEvery) != nil {
			return nil
		}
	}
}

func (r *Runner) start(ctx context.Context) (*river.Client[pgx.Tx], error) {
	all, err := r.workers()
	if err != nil {
		return nil, fmt.Errorf("job workers: %w", err)
	}
	client, err := river.NewClient(riverpgxv5.New(r.cfg.Pool), &river.Config{
		Schema:  Schema,
		Logger:  quiet(r.cfg.Logger),
		Workers: all,
		Queues:  r.cfg.Workers.queues(),
		PeriodicJobs: slices.Concat([]*river.PeriodicJob{every(upkeepEvery, archiveUpkeep{}, true)},
			r.cfg.Shops.periodic(), r.cfg.Installs.periodic()),
		Middleware:                  r.cfg.middleware(),
		JobTimeout:                  30 * time.Second,
		RescueStuckJobsAfter:        rescueAfter,
		CompletedJobRetentionPeriod: time.Hour,
		SoftStopTimeout:             stopTimeout - 2*time.Second,
		ReindexerIndexNames:         []string{}, // control's role owns no table, so it cannot reindex
	})
	if err != nil {
		return nil, fmt.Errorf("job client: %w", err)
	}
	if err := client.Start(context.WithoutCancel(ctx)); err != nil {
		return nil, fmt.Errorf("start jobs: %w", err)
	}
	return client, nil
}

func (r *Runner) workers() (*river.Workers, error) {
	all := river.NewWorkers()
	return all, errors.Join(
		r.cfg.Installs.addWorkers(all),
		r.cfg.Shops.addWorkers(all),
		addWorker(all, 10*time.Second, r.cfg.pushKey),
		addWorker(all, 0, func(ctx context.Context, a itemPush) error {
			return r.cfg.Items.Push(ctx,
				a.ConnectionID, a.ItemIDs)
		}),
		addWorker(all, longTimeout, func(ctx context.Context, a recompose) error {
			return r.cfg.Recomposer.Recompose(ctx, a.ConnectionID, a.TaxonomyIDs)
		}),
		addWorker(all, longTimeout, r.cfg.maintainArchive),
	)
}

func stop(ctx context.Context, client *river.Client[pgx.Tx]) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if err := client.Stop(ctx); err != nil {
		return fmt.Errorf("stop jobs: %w", err)
	}
	return nil
}
