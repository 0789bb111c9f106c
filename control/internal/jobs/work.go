package jobs

import (
	"context"
	"errors"
	"time"

	"github.com/riverqueue/river"

	"storefront.internal/control/internal/bootstrap"
	"storefront.internal/control/internal/ingest"
	"storefront.internal/control/internal/installation"
	"storefront.internal/control/internal/observation"
	"storefront.internal/control/internal/privacy"
	"storefront.internal/control/internal/seal"
	"storefront.internal/control/internal/shop"
	"storefront.internal/shared/catalog"
	"storefront.internal/shared/ident"
)

// The use cases that jobs call and that have more than one implementation, or lie in package postgres. Each
// may be called at any time and repeatedly.
type (
	// KeyPusher copies the changes of keys that Redis lacks.
	KeyPusher interface {
		Publish(ctx context.Context) error
	}

	// ItemPusher writes the state of items to Redis.
	ItemPusher interface {
		Push(ctx context.Context, c ident.ConnectionID, items []ident.ItemID) error
	}

	// Recomposer gives the items of changed categories new bodies.
	Recomposer interface {
		Recompose(ctx context.Context, c ident.ConnectionID, nodes []catalog.TaxonomyID) error
	}

	// BootstrapScheduler enqueues work for bootstrap runs and shops.
	BootstrapScheduler interface {
		// RequeueRuns gives each unfinished run that has no job one.
		RequeueRuns(ctx context.Context) error
		// RequestCatchUps enqueues the catch-up of every shop that is due, or a run where the last one is
		// older than reload. A shop is due once in every.
		RequestCatchUps(ctx context.Context, every, reload time.Duration) error
	}

	// MarkedSweeper gives entities that were marked a while ago, and were not fetched, a job.
	MarkedSweeper interface {
		RequeueMarked(ctx context.Context) error
	}

	// SagaScheduler enqueues work for installations.
	SagaScheduler interface {
		// RequeueInstallations gives each unfinished installation that has no job one.
		RequeueInstallations(ctx context.Context) error
		// RequestSubscriptionChecks enqueues the check of the subscriptions of every shop that is due. A
		// shop is due once in every.
		RequestSubscriptionChecks(ctx context.Context, every time.Duration) error
	}
)

// A job whose process died is given to another worker when its timeout has passed, but not before
// rescueAfter.
const (
	rescueAfter      = time.Minute
	sagaTimeout      = time.Minute // bounds one call to a provider and more; what is done stays done
	bootstrapTimeout = 2 * time.Minute
	longTimeout      = 4 * time.Minute // of work that takes many steps
)

// How often periodic jobs run. Requeueing finds work without a job: after an update, or when an operator
// deleted the job. Shops that are due are looked for much more often than each of them is due, so that their
// jobs come spread over time.
const (
	upkeepEvery  = time.Hour
	requeueEvery = 5 * time.Minute
	dueEvery     = 10 * time.Second
	sweepEvery   = time.Minute
	resealEvery  = 10 * time.Minute
)

// subscriptionsEvery is the time between two checks of the subscriptions of a shop. Providers drop them after
// failed deliveries; the catch-up finds what happened meanwhile.
const subscriptionsEvery = time.Hour

// InstallWork is what installations and sealed secrets need.
type InstallWork struct {
	Runner    *installation.Runner
	Scheduler SagaScheduler
	Sweeper   *installation.Sweeper
	Seals     *seal.Resealer
}

// addWorkers adds no worker for a nil InstallWork.
func (w *InstallWork) addWorkers(all *river.Workers) error {
	if w == nil {
		return nil
	}
	return errors.Join(
		addWorker(all, sagaTimeout, func(ctx context.Context, a installationSaga) error {
			snooze, err := w.Runner.Run(ctx, installation.Ref{ID: a.InstallationID, Epoch: a.Epoch})
			if a.BesideAttempt != 0 {
				snooze = 0
			}
			return toRiverResult(snooze, err)
		}),
		addWorker(all, longTimeout, func(ctx context.Context, _ requeueInstallations) error {
			return w.Scheduler.RequeueInstallations(ctx)
		}),
		addWorker(all, longTimeout, func(ctx context.Context, _ subscriptionSweep) error {
			return w.Scheduler.RequestSubscriptionChecks(ctx, subscriptionsEvery)
		}),
		addWorker(all, longTimeout, func(ctx context.Context, a subscriptionCheck) error {
			return toRiverResult(0, w.Sweeper.Check(ctx, a.ConnectionID))
		}),
		addWorker(all, longTimeout, func(ctx context.Context,
			_ secretReseal) error {
			return w.Seals.Reseal(ctx)
		}),
	)
}

func (w *InstallWork) periodic() []*river.PeriodicJob {
	if w == nil {
		return nil
	}
	return []*river.PeriodicJob{
		every(requeueEvery, requeueInstallations{}, true), every(sweepEvery, subscriptionSweep{}, true),
		every(resealEvery, secretReseal{}, true),
	}
}

// ShopWork is what is done for shops of providers.
type ShopWork struct {
	Refresher  *ingest.Service
	Checker    *shop.Checker
	Bootstraps *bootstrap.Runner
	Scheduler  BootstrapScheduler
	Marked     MarkedSweeper
	Privacy    *privacy.Service

	CatchUpEvery time.Duration // time between two catch-ups of a shop
	ReloadEvery  time.Duration // greatest age of the last bootstrap run of a shop
}

// The most jobs of one shop that a process runs at a time. The rest of the workers of their queue is for
// other shops.
const (
	refreshesOfShop = 4
	checksOfShop    = 1
)

// addWorkers adds no worker for a nil ShopWork.
func (w *ShopWork) addWorkers(all *river.Workers) error {
	if w == nil {
		return nil
	}
	refreshes, checks := newTurns(refreshesOfShop), newTurns(checksOfShop)
	return errors.Join(
		addWorker(all, 0, func(ctx context.Context, a refresh) error {
			return refreshes.run(a.ConnectionID, func() error {
				return toRiverResult(w.Refresher.Refresh(ctx, a.ConnectionID,
					observation.Key{Entity: a.Entity, ExternalID: a.ExternalID}))
			})
		}),
		addWorker(all, 0, func(ctx context.Context, a shopCheck) error {
			return checks.run(a.ConnectionID, func() error {
				return toRiverResult(w.Checker.Check(ctx, a.ConnectionID, a.Uninstalled))
			})
		}),
		addWorker(all, bootstrapTimeout, func(ctx context.Context, a bootstrapRun) error {
			return toRiverResult(w.Bootstraps.Run(ctx, a.RunID))
		}),
		addWorker(all, longTimeout, func(ctx context.Context, a catchUp) error {
			return toRiverResult(w.Bootstraps.CatchUp(ctx, a.ConnectionID))
		}),
		addWorker(all, longTimeout, func(ctx context.Context,
			a privacyRequest) error {
			return w.Privacy.Execute(ctx, a.RequestID)
		}),
		addWorker(all, longTimeout, func(ctx context.Context, _ requeueBootstraps) error {
			return w.Scheduler.RequeueRuns(ctx)
		}),
		addWorker(all, longTimeout, func(ctx context.Context, _ requeueCatchUps) error {
			return w.Scheduler.RequestCatchUps(ctx, w.CatchUpEvery, w.ReloadEvery)
		}),
		addWorker(all, longTimeout, func(ctx context.Context, _ markedSweep) error {
			return w.Marked.RequeueMarked(ctx)
		}),
	)
}

func (w *ShopWork) periodic() []*river.PeriodicJob {
	if w == nil {
		return nil
	}
	return []*river.PeriodicJob{every(requeueEvery, requeueBootstraps{}, true),
		every(requeueEvery, markedSweep{}, true),
		every(min(w.CatchUpEvery, dueEvery), requeueCatchUps{}, false)}
}

func every(interval time.Duration, args river.JobArgs, onStart bool) *river.PeriodicJob {
	return river.NewPeriodicJob(river.PeriodicInterval(interval),
		func() (river.JobArgs, *river.InsertOpts) {
			return args,
				nil
		}, &river.PeriodicJobOpts{RunOnStart: onStart})
}

func (c *Config) pushKey(ctx context.Context, _ keyPush) error { return c.Keys.Publish(ctx) }
