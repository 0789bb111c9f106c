package bootstrap

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"storefront.internal/control/internal/ingest"
	"storefront.internal/control/internal/observation"
	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/shop"
	"storefront.internal/shared/catalog"
	"storefront.internal/shared/crashpoint"
	"storefront.internal/shared/ident"
)

// ErrSuperseded means that another worker has the run, or that it has ended.
var ErrSuperseded = errors.New("bootstrap: superseded")

// Tally returns the progress to save from what became of a page's entities.
type Tally func([]observation.Outcome) Progress

// Store is what a Loader works on. Each method is one transaction.
type Store interface {
	// Take returns a run as running, or ErrSuperseded when it has ended.
	Take(ctx context.Context, id ident.RunID) (Run, error)
	// NextFetch numbers a fetch.
	NextFetch(ctx context.Context) (int64, error)
	// SavePage applies a page and saves the progress behind it. It returns ErrSuperseded unless the last save of the
	// resource is the given one.
	SavePage(ctx context.Context, id ident.RunID, e catalog.Entity, saves int64, b *observation.Batch, t Tally) ([]observation.Outcome, error)
	// Missing returns entities that are there, whose applied fetch is older than the number, in order behind the id.
	Missing(ctx context.Context, c ident.ConnectionID, e catalog.Entity, before int64, after string, limit int) ([]string, error)
	// Wait says that the run goes on later, and how many attempts brought nothing so far.
	Wait(ctx context.Context, id ident.RunID, failures int, reason string, wait time.Duration) error
	// End ends a run.
	End(ctx context.Context, id ident.RunID, to State, reason string) error
	// RequestCheck enqueues the check of a shop whose credential was refused.
	RequestCheck(ctx context.Context, c ident.ConnectionID) error
	// LastCatchUp returns when the last catch-up of an installed shop began, and the store's time.
	LastCatchUp(ctx context.Context, c ident.ConnectionID) (last, now time.Time, err error)
	// CaughtUp notes the beginning of a catch-up that ended.
	CaughtUp(ctx context.Context, c ident.ConnectionID, began time.Time) error
	// Apply applies a page of a catch-up.
	Apply(ctx context.Context, b *observation.Batch) ([]observation.Outcome, error)
}

// Shops opens shops.
type Shops interface {
	Open(ctx context.Context, c ident.ConnectionID) (shop.Opened, error)
}

// Loader works runs.
type Loader struct {
	store   Store
	shops   Shops
	metrics *ingest.Metrics
	now     func() time.Time
}

// NewLoader returns a Loader.
func NewLoader(store Store, shops Shops, metrics *ingest.Metrics, now func() time.Time) *Loader {
	return &Loader{store: store, shops: shops, metrics: metrics, now: now}
}

// The bounds of a worker's turn and of a run's patience: maxFailures attempts in a row, the last ones a minute apart.
const (
	turn        = 20 * time.Second
	yield       = time.Millisecond
	maxFailures = 60
	maxBackoff  = time.Minute
	asked       = 20 // of the missing, at a time
)

// Load works a run for a while. again is when to go on, 0 when the run has ended.
func (l *Loader) Load(ctx context.Context, id ident.RunID) (again time.Duration, err error) {
	run, err := l.store.Take(ctx, id)
	if err != nil {
		return l.ended(err)
	}
	opened, err := l.shops.Open(ctx, run.ConnectionID)
	if errors.Is(err, shop.ErrClosed) {
		return l.ended(l.store.End(ctx, id, Failed, "store_closed"))
	}
	if err != nil {
		return 0, err
	}
	pages := newReader(ctx, l.store, opened)
	defer pages.close()
	for until := l.now().Add(turn); ; {
		entity, p := run.next()
		if p == nil {
			return l.ended(l.store.End(ctx, id, Completed, ""))
		}
		wait, err := l.step(ctx, &run, pages, entity, p)
		switch {
		case errors.Is(err, ErrSuperseded):
			return 0, nil
		case err != nil:
			return l.failed(ctx, &run, err)
		case wait > 0:
			return wait, l.store.Wait(ctx, id, 0, "", wait)
		case l.now().After(until):
			return yield, nil
		}
		run.Failures = 0
	}
}

func (l *Loader) ended(err error) (time.Duration, error) {
	if errors.Is(err, ErrSuperseded) {
		return 0, nil
	}
	return 0, err
}

// step reads one page, or asks for some of the missing.
func (l *Loader) step(ctx context.Context, run *Run, pages *reader, e catalog.Entity, p *Progress) (time.Duration, error) {
	if p.Phase == Missing {
		return 0, l.missing(ctx, run, pages.shop, e, p)
	}
	page, number, err := pages.read(e, p.Cursor)
	if err != nil {
		return 0, err
	}
	if page.Next != "" && page.After == 0 {
		pages.begin(e, page.Next)
	}
	crashpoint.Hit(crashpoint.PageAnswered)
	next := *p
	if next.First == 0 {
		next.First = number
	}
	if page.Begins {
		next.Exported = number
	}
	if page.Exported && next.Exported > 0 {
		number = next.Exported
	}
	next.Cursor = page.Next
	next.Read += int64(len(page.Items))
	if page.Next == "" {
		next.Phase = Missing
	}
	return page.After, l.save(ctx, run, pages.shop, e, p, next, page.Items, number)
}

// missing asks for entities that were in no page. Orders are not asked for: listings of orders do not go all the way back.
func (l *Loader) missing(ctx context.Context, run *Run, opened shop.Opened, e catalog.Entity, p *Progress) error {
	var ids []string
	if e != catalog.Order {
		var err error
		if ids, err = l.store.Missing(ctx, run.ConnectionID, e, p.First, p.After, asked); err != nil {
			return err
		}
	}
	for _, id := range ids {
		number, err := l.store.NextFetch(ctx)
		if err != nil {
			return err
		}
		f, err := ingest.FetchOne(ctx, opened, observation.Key{Entity: e, ExternalID: id})
		if err != nil {
			return err
		}
		next := *p
		next.After = id
		if err := l.save(ctx, run, opened, e, p, next, []provider.Fetched{f}, number); err != nil {
			return err
		}
	}
	if len(ids) == asked {
		return nil
	}
	next := *p
	next.Phase = Done
	return l.save(ctx, run, opened, e, p, next, nil, 0)
}

// save applies entities and saves the progress with them.
func (l *Loader) save(ctx context.Context, run *Run, opened shop.Opened, e catalog.Entity, p *Progress, next Progress, items []provider.Fetched, number int64) error {
	b := ingest.BatchOf(opened.Source, l.now(), items, number)
	base := next
	tally := func(outcomes []observation.Outcome) Progress {
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
	outcomes, err := l.store.SavePage(ctx, run.ID, e, p.Saves, b, tally)
	if err != nil {
		return err
	}
	crashpoint.Hit(crashpoint.PageAfterCommit)
	*p = next
	l.metrics.Applied(opened.Source.Provider, outcomes)
	return nil
}

// failed says what a run does about a provider that did not answer: it waits, and gives up when waiting does not help.
func (l *Loader) failed(ctx context.Context, run *Run, err error) (time.Duration, error) {
	reason := string(provider.ReasonOf(err))
	after, worth := provider.Retry(err)
	if !worth && reason == string(provider.ReasonInternal) || ctx.Err() != nil {
		return 0, err // ours, not the provider's
	}
	if ingest.Closing(err) {
		if err := l.store.RequestCheck(ctx, run.ConnectionID); err != nil {
			return 0, err
		}
	}
	var throttled *provider.Throttled
	if !errors.As(err, &throttled) {
		run.Failures++
	}
	if !worth || run.Failures >= maxFailures {
		return l.ended(l.store.End(ctx, run.ID, Failed, reason))
	}
	if after == 0 {
		after = min(maxBackoff, time.Second<<min(run.Failures, 6))
		after = after/2 + rand.N(after/2)
	}
	return after, l.store.Wait(ctx, run.ID, run.Failures, reason, after)
}
