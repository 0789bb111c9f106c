// Package jobs owns control's background work as River jobs. A job is enqueued in the transaction that causes it and
// carries identifiers only, never a secret: its arguments are shown to operators. The package refuses to hold rules: a
// worker calls one use case and says when to try again.
//
// River's tables lie in schema control; Migrate brings them up and gives control's role what River needs of them.
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

	"storefront.internal/shared/ident"
)

// Schema is where River's tables are.
const Schema = "control"

// How many jobs one process works at a time, by queue, and when a job whose process died is given to another.
const (
	workers          = 8
	pushWorkers      = 4
	recomposeWorkers = 2
	rescueAfter      = time.Minute     // but not before its own timeout
	longTimeout      = 4 * time.Minute // of work that takes many steps
)

// Inserter enqueues jobs.
type Inserter struct{ client *river.Client[pgx.Tx] }

// NewInserter returns an Inserter; it works no job.
func NewInserter(pool *pgxpool.Pool, logger *slog.Logger) (*Inserter, error) {
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{Schema: Schema, Logger: quiet(logger)})
	if err != nil {
		return nil, fmt.Errorf("job inserter: %w", err)
	}
	return &Inserter{client: client}, nil
}

// EnqueueKeyPush enqueues the push of a key to Redis with the transaction that changes the key.
func (i *Inserter) EnqueueKeyPush(ctx context.Context, tx pgx.Tx, k ident.KeyID) error {
	if _, err := i.client.InsertTx(ctx, tx, keyPush{KeyID: k}, nil); err != nil {
		return fmt.Errorf("enqueue key push: %w", err)
	}
	return nil
}

// Config is what a Runner is made of.
type Config struct {
	Pool       *pgxpool.Pool
	Keys       KeyPusher
	Items      ItemPusher
	Recomposer Recomposer
	Archive    Archive
	Retention  time.Duration // of the archive; 0 keeps it
	Shops      *ShopWork     // nil: no provider's shop is called
	Installs   *InstallWork  // nil: no installation goes on
	Metrics    *Metrics      // nil: nothing is measured
	Logger     *slog.Logger
}

// Runner works jobs.
type Runner struct{ cfg Config }

// NewRunner returns a Runner.
func NewRunner(cfg Config) *Runner { return &Runner{cfg: cfg} }

// The pauses of a Runner: between two attempts to start, and for the jobs in flight when it ends.
const (
	startEvery  = time.Second
	stopTimeout = 12 * time.Second
)

// Run works jobs until the context ends, and then lets those in flight end. While PostgreSQL is away or has not got
// River's tables, it tries again.
func (r *Runner) Run(ctx context.Context) error {
	tick := time.NewTicker(startEvery)
	defer tick.Stop()
	for logged := false; ; {
		client, err := r.start(ctx)
		if err == nil {
			<-ctx.Done()
			return stop(ctx, client)
		}
		if !logged && ctx.Err() == nil {
			logged = true
			r.cfg.Logger.Warn("jobs do not start; trying on", "error", err.Error())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
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
		Queues: map[string]river.QueueConfig{
			river.QueueDefault: {MaxWorkers: workers},
			queuePush:          {MaxWorkers: pushWorkers},
			queueRecompose:     {MaxWorkers: recomposeWorkers},
			queueInstall:       {MaxWorkers: installWorkers},
			queueRefresh:       {MaxWorkers: refreshWorkers},
			queueLoad:          {MaxWorkers: loadWorkers},
		},
		PeriodicJobs:                slices.Concat(periodic(), r.cfg.Shops.periodic(), r.cfg.Installs.periodic()),
		Middleware:                  r.cfg.Metrics.middleware(),
		JobTimeout:                  30 * time.Second,
		RescueStuckJobsAfter:        rescueAfter,
		CompletedJobRetentionPeriod: time.Hour,
		SoftStopTimeout:             stopTimeout - 2*time.Second,
		ReindexerIndexNames:         []string{}, // reindexing is the owner's, and control owns no table
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
		r.cfg.Installs.add(all),
		r.cfg.Shops.add(all),
		river.AddWorkerSafely(all, &keyPushWorker{keys: r.cfg.Keys}),
		river.AddWorkerSafely(all, &itemPushWorker{items: r.cfg.Items}),
		river.AddWorkerSafely(all, &recomposeWorker{items: r.cfg.Recomposer}),
		river.AddWorkerSafely(all, &upkeepWorker{archive: r.cfg.Archive, retention: r.cfg.Retention, logger: r.cfg.Logger}),
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
