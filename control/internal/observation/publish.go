package observation

import (
	"context"
	"log/slog"
	"time"

	"storefront.internal/shared/crashpoint"
	"storefront.internal/shared/ident"
)

// Served is what an edge serves of an item. Body is nil for a deleted one.
type Served struct {
	ItemID          ident.ItemID
	RefreshRevision int64
	Body            []byte
}

// Hot is where edges look before they ask the store.
type Hot interface {
	// PutItems writes what is newer than what is there and returns how many were.
	PutItems(ctx context.Context, c ident.ConnectionID, items []Served) (written int, err error)
}

// Aggregates is the store of what is served, and of the figures that are watched.
type Aggregates interface {
	Served(ctx context.Context, c ident.ConnectionID, items []ident.ItemID) ([]Served, error)
	Figures(ctx context.Context) (Figures, error)
}

// Figures are counts of the store; those of rows are bounded.
type Figures struct {
	Quarantined int
	Strays      int           // rows that found no day's partition
	PushLag     time.Duration // age of the oldest push that is not done
}

// Publisher tells the edges' hot store what items look like, and watches how far it is.
type Publisher struct {
	store   Aggregates
	hot     Hot
	metrics *Metrics
	logger  *slog.Logger
}

// NewPublisher returns a Publisher.
func NewPublisher(store Aggregates, hot Hot, metrics *Metrics, logger *slog.Logger) *Publisher {
	return &Publisher{store: store, hot: hot, metrics: metrics, logger: logger}
}

// Push writes the present state of items; it may be asked at any time and repeatedly.
func (p *Publisher) Push(ctx context.Context, c ident.ConnectionID, items []ident.ItemID) error {
	served, err := p.store.Served(ctx, c, items)
	crashpoint.Hit(crashpoint.ItemsRead)
	if err == nil {
		var written int
		if written, err = p.hot.PutItems(ctx, c, served); err == nil {
			crashpoint.Hit(crashpoint.ItemsWritten)
			p.metrics.pushes.WithLabelValues("written").Add(float64(written))
			p.metrics.pushes.WithLabelValues("newer").Add(float64(len(served) - written))
			return nil
		}
	}
	p.metrics.pushes.WithLabelValues("failed").Add(float64(len(items)))
	return err
}

// figuresEvery is how old the gauges of the store may be.
const figuresEvery = 15 * time.Second

// Run keeps the gauges until the context ends.
func (p *Publisher) Run(ctx context.Context) error {
	tick := time.NewTicker(figuresEvery)
	defer tick.Stop()
	for {
		p.watch(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (p *Publisher) watch(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, figuresEvery)
	defer cancel()
	f, err := p.store.Figures(ctx)
	if err != nil {
		if ctx.Err() == nil {
			p.logger.Warn("the catalog's figures cannot be read", "error", err.Error())
		}
		return
	}
	p.metrics.quarantine.Set(float64(f.Quarantined))
	p.metrics.strays.Set(float64(f.Strays))
	p.metrics.waiting.Set(f.PushLag.Seconds())
}
