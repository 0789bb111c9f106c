package jobs

import (
	"errors"
	"time"

	"github.com/riverqueue/river"
)

// ShopWork is what is done for shops of providers.
type ShopWork struct {
	Refresher Refresher
	Checker   ShopChecker
	Loader    Loader
	Sweeper   Sweeper
	Privacy   PrivacyExecutor

	CatchUpEvery time.Duration // how often shops are caught up with
	ReloadEvery  time.Duration // how old the last load of a shop may be
}

// add adds the workers. Without shops there are none.
func (w *ShopWork) add(all *river.Workers) error {
	if w == nil {
		return nil
	}
	return errors.Join(
		river.AddWorkerSafely(all, &refreshWorker{entities: w.Refresher}),
		river.AddWorkerSafely(all, &shopCheckWorker{shops: w.Checker}),
		river.AddWorkerSafely(all, &loadWorker{loader: w.Loader}),
		river.AddWorkerSafely(all, &catchUpWorker{loader: w.Loader}),
		river.AddWorkerSafely(all, &privacyWorker{requests: w.Privacy}),
		river.AddWorkerSafely(all, &resumeLoadsWorker{sweeper: w.Sweeper}),
		river.AddWorkerSafely(all, &catchUpsWorker{sweeper: w.Sweeper, reload: w.ReloadEvery}),
	)
}

// periodic is the search for loads that nobody works, and the catch-up with every shop.
func (w *ShopWork) periodic() []*river.PeriodicJob {
	if w == nil {
		return nil
	}
	return []*river.PeriodicJob{
		river.NewPeriodicJob(river.PeriodicInterval(resumeEvery),
			func() (river.JobArgs, *river.InsertOpts) { return resumeLoads{}, nil }, &river.PeriodicJobOpts{RunOnStart: true}),
		river.NewPeriodicJob(river.PeriodicInterval(w.CatchUpEvery),
			func() (river.JobArgs, *river.InsertOpts) { return catchUps{}, nil }, nil),
	}
}
