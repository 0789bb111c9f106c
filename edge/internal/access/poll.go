package access

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Run polls both stores for changes of keys until the context ends. Each store has its own loop, so
// that one that hangs does not stop the other.
func (r *KeyResolver) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	wg.Go(func() { r.poll(ctx, "store", nil, r.pollStore) })
	wg.Go(func() { r.poll(ctx, "cache", r.hinted, r.pollCache) })
	wg.Wait()
	return nil
}

// PollNow makes the cache's loop poll within a tenth of a second. It is called for hints that keys changed,
// and never blocks.
func (r *KeyResolver) PollNow() {
	select {
	case r.hinted <- struct{}{}:
	default: // a poll is due already
	}
}

func (r *KeyResolver) poll(ctx context.Context, store string, hinted <-chan struct{},
	once func(context.Context) error) {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	failing := false
	for {
		pollCtx, cancel := context.WithTimeout(ctx, pollTimeout)
		err := once(pollCtx)
		cancel()
		if ctx.Err() != nil {
			return
		}
		r.observe(store, err, &failing)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-hinted:
			pause(ctx, hintPause)
		}
	}
}

// pause lets the hints of a rush of changes come together.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// observe counts failures, and logs only the first of them and the first success after them.
func (r *KeyResolver) observe(store string, err error, failing *bool) {
	if err != nil {
		r.cfg.Metrics.pollFailures.WithLabelValues(store).Inc()
	}
	if (err != nil) == *failing {
		return
	}
	*failing = err != nil
	if *failing {
		r.cfg.Logger.Warn("key version cannot be read", slog.String("from", store), slog.Any("error", err))
	} else {
		r.cfg.Logger.Info("key version can be read", slog.String("from", store))
	}
}

// pollStore and pollCache confirm as of the time at which they asked, because the answer may be delayed.

func (r *KeyResolver) pollStore(ctx context.Context) error {
	at := r.cfg.Now()
	since, known := r.freshness.asked()
	log, err := r.cfg.Store.Changes(ctx, since, known)
	if err != nil {
		return err
	}
	r.freshness.recordStore(log, since, at)
	return nil
}

func (r *KeyResolver) pollCache(ctx context.Context) error {
	at := r.cfg.Now()
	since, known := r.freshness.asked()
	log, published, err := r.cfg.Cache.Changes(ctx, since, known)
	if err != nil {
		return err
	}
	r.freshness.recordCache(log, published, at)
	return nil
}
