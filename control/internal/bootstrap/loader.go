package bootstrap

import (
	"context"
	"errors"
	"time"

	"storefront.internal/control/internal/ingest"
	"storefront.internal/control/internal/observation"
	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/shop"
	"storefront.internal/shared/backoff"
	"storefront.internal/shared/catalog"
	"storefront.internal/shared/failpoint"
	"storefront.internal/shared/ident"
)

// ErrSuperseded means that another worker continued the run, or that the run is finished.
var ErrSuperseded = errors.New("bootstrap: superseded")

// NextProgress returns the progress to save, given what became of the entities of a page.
type NextProgress func([]observation.Outcome) Progress

// Store is where a Runner stores what it reads. Each method is one transaction.
type Store interface {
	// StartRun returns a run and sets its state to running; ErrSuperseded when it is finished.
	StartRun(ctx context.Context, id ident.RunID) (Run, error)
	// NextFetchSeq returns the sequence number of a new fetch.
	NextFetchSeq(ctx context.Context) (int64, error)
	// SavePage applies a page and saves the progress after it. It returns ErrSuperseded unless the resource
	// has the given number of saves.
	SavePage(ctx context.Context, id ident.RunID, e catalog.Entity, saves int64, b *observation.Batch,
		t NextProgress) ([]observation.Outcome, error)
	// Missing returns existing entities whose applied fetch has a smaller sequence number, ordered, after the
	// id.
	Missing(ctx context.Context, c ident.ConnectionID, e catalog.Entity, before int64, after string,
		limit int) ([]string, error)
	// RecordFailure stores the number of failed attempts in a row and the last reason.
	RecordFailure(ctx context.Context, id ident.RunID, failures int, reason string) error
	// FinishRun stores the final state of a run.
	FinishRun(ctx context.Context, id ident.RunID, to State, reason string) error
	// EnqueueShopCheck enqueues the check of a shop whose provider refused the credential.
	EnqueueShopCheck(ctx context.Context, c ident.ConnectionID) error
	// LastCatchUp returns when the last catch-up of an installed shop began, and PostgreSQL's time.
	LastCatchUp(ctx context.Context, c ident.ConnectionID) (last, now time.Time, err error)
	// SetLastCatchUp stores when a completed catch-up began.
	SetLastCatchUp(ctx context.Context, c ident.ConnectionID, began time.Time) error
	// Apply applies a page of a catch-up.
	Apply(ctx context.Context, b *observation.Batch) ([]observation.Outcome, error)
}

// Runner executes bootstrap runs and catch-ups.
type Runner struct {
	store   Store
	shops   *shop.Shops
	metrics *ingest.Metrics
	now     func() time.Time
}

// NewRunner returns a Loader.
func NewRunner(store Store, shops *shop.Shops, metrics *ingest.Metrics, now func() time.Time) *Runner {
	return &Runner{store: store, shops: shops, metrics: metrics, now: now}
}

// The bounds of a run: a job works maxSlice at a time and then makes room for others, and maxFailures failed
// attempts in a row, the last ones a minute apart, fail the run.
const (
	maxSlice        = 20 * time.Second
	requeueDelay    = time.Millisecond
	maxFailures     = 60
	maxBackoff      = time.Minute
	missingPageSize = 20
)

// Run works a run for at most a slice. snooze is the time until it continues, 0 when the run is finished.
func (l *Runner) Run(ctx context.Context, id ident.RunID) (snooze time.Duration, err error) {
	run, err := l.store.StartRun(ctx, id)
	if err != nil {
		return l.ignoreSuperseded(err)
	}
	opened, err := l.shops.Open(ctx, run.ConnectionID)
	if errors.Is(err, shop.ErrClosed) {
		return l.ignoreSuperseded(l.store.FinishRun(ctx, id, Failed, "store_closed"))
	}
	if err != nil {
		return 0, err
	}
	pages := newReader(ctx, l.store, opened)
	defer pages.close()
	for until := l.now().Add(maxSlice); ; {
		entity, p := run.next()
		if p == nil {
			return l.ignoreSuperseded(l.store.FinishRun(ctx, id, Completed, ""))
		}
		wait, err := l.step(ctx, &run, pages, entity, p)
		switch {
		case errors.Is(err, ErrSuperseded):
			return 0, nil
		case err != nil:
			return l.failed(ctx, &run, err)
		case wait > 0:
			return wait, l.store.RecordFailure(ctx, id, 0, "")
		case l.now().After(until):
			return requeueDelay, nil
		}
		run.Failures = 0
	}
}

func (l *Runner) ignoreSuperseded(err error) (time.Duration, error) {
	if errors.Is(err, ErrSuperseded) {
		return 0, nil
	}
	return 0, err
}

// step reads one page, or fetches some missing entities.
func (l *Runner) step(ctx context.Context, run *Run, pages *reader, e catalog.Entity,
	p *Progress) (time.Duration, error) {
	if p.Phase == Missing {
		return 0, l.fetchMissing(ctx, run, pages.shop, e, p)
	}
	page, fetchSeq, err := pages.read(e, p.Cursor)
	if err != nil {
		return 0, err
	}
	if page.Next != "" && page.ReadyAfter == 0 {
		pages.prefetch(e, page.Next)
	}
	failpoint.Hit(failpoint.PageAnswered)
	next := *p
	if next.FirstFetchSeq == 0 {
		next.FirstFetchSeq = fetchSeq
	}
	if page.SnapshotStarted {
		next.ExportFetchSeq = fetchSeq
	}
	if page.FromSnapshot && next.ExportFetchSeq > 0 {
		fetchSeq = next.ExportFetchSeq
	}
	next.Cursor = page.Next
	next.Read += int64(len(page.Items))
	if page.Next == "" {
		next.Phase = Missing
	}
	return page.ReadyAfter, l.save(ctx, run, pages.shop, e, p, next, page.Items, fetchSeq)
}

// fetchMissing fetches entities that were in no page. It skips orders, whose listings do not reach back to
// the oldest.
func (l *Runner) fetchMissing(ctx context.Context, run *Run, opened shop.Opened, e catalog.Entity,
	p *Progress) error {
	var ids []string
	if e != catalog.Order {
		var err error
		if ids, err = l.store.Missing(ctx, run.ConnectionID, e, p.FirstFetchSeq, p.AfterID,
			missingPageSize); err != nil {
			return err
		}
	}
	for _, id := range ids {
		fetchSeq, err := l.store.NextFetchSeq(ctx)
		if err != nil {
			return err
		}
		f, err := ingest.FetchOne(ctx, opened, observation.Key{Entity: e, ExternalID: id})
		if err != nil {
			return err
		}
		next := *p
		next.AfterID = id
		if err := l.save(ctx, run, opened, e, p, next, []provider.Fetched{f}, fetchSeq); err != nil {
			return err
		}
	}
	if len(ids) == missingPageSize {
		return nil
	}
	next := *p
	next.Phase = Done
	return l.save(ctx, run, opened, e, p, next, nil, 0)
}

// save applies entities and saves the progress in the same transaction.
func (l *Runner) save(ctx context.Context, run *Run, opened shop.Opened, e catalog.Entity, p *Progress,
	next Progress, items []provider.Fetched, fetchSeq int64) error {
	b := ingest.NewBatch(opened.Source, l.now(), items, fetchSeq)
	base := next
	progressAfter := func(outcomes []observation.Outcome) Progress {
		next = base // the transaction may be repeated
		next.Saves++
		for i, o := range outcomes {
			switch {
			case o.Status != observation.Accepted:
			case b.Elements[i].Operation == catalog.Delete:
				next.Deleted++
			default:
				next.Changed++
			}
		}
		return next
	}
	outcomes, err := l.store.SavePage(ctx, run.ID, e, p.Saves, b, progressAfter)
	if err != nil {
		return err
	}
	failpoint.Hit(failpoint.PageAfterCommit)
	*p = next
	l.metrics.Applied(opened.Source.Provider, outcomes)
	return nil
}

// failed decides what follows a failed attempt: the run waits, and fails when waiting does not help.
func (l *Runner) failed(ctx context.Context, run *Run, err error) (time.Duration, error) {
	reason := string(provider.ReasonOf(err))
	after, retryable := provider.RetryAfter(err)
	if !retryable && reason == string(provider.ReasonInternal) || ctx.Err() != nil {
		return 0, err // our own error, not the provider's
	}
	if ingest.AccessDenied(err) {
		if err := l.store.EnqueueShopCheck(ctx, run.ConnectionID); err != nil {
			return 0, err
		}
	}
	var throttled *provider.Throttled
	if !errors.As(err, &throttled) {
		run.Failures++
	}
	if !retryable || run.Failures >= maxFailures {
		return l.ignoreSuperseded(l.store.FinishRun(ctx, run.ID, Failed, reason))
	}
	if after == 0 {
		after = backoff.Policy{Min: 2 * time.Second, Max: maxBackoff}.Delay(run.Failures)
	}
	return after, l.store.RecordFailure(ctx, run.ID, run.Failures, reason)
}
