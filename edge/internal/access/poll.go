package access

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Run polls both stores for the version of the keys until the context ends. Each store has its own loop, so
// that one that hangs does not stop the other.
func (r *KeyResolver) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	wg.Go(func() { r.poll(ctx, "store", r.nudgeStore, r.pollStore) })
	wg.Go(func() { r.poll(ctx, "cache", r.nudgeCache, r.pollCache) })
	wg.Wait()
	return nil
}

// PollNow makes both loops poll at once. It is called for hints that the keys changed, and never blocks.
func (r *KeyResolver) PollNow() {
	for _, nudge := range []chan struct{}{r.nudgeStore, r.nudgeCache} {
		select {
		case nudge <- struct{}{}:
		default: // a poll is due already
		}
	}
}

func (r *KeyResolver) poll(ctx context.Context, store string, nudge <-chan struct{},
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
		case <-nudge:
		}
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
	version, err := r.cfg.Store.Version(ctx)
	if err != nil {
		return err
	}
	r.forgetIf(r.freshness.recordStore(version, at))
	return nil
}

func (r *KeyResolver) pollCache(ctx context.Context) error {
	at := r.cfg.Now()
	version, known, err := r.cfg.Cache.Version(ctx)
	if err != nil {
		return err
	}
	r.forgetIf(r.freshness.recordCache(version, known, at))
	return nil
}

// forgetIf frees the entries of earlier generations, which are not used any more.
func (r *KeyResolver) forgetIf(versionChanged bool) {
	if versionChanged {
		r.cfg.Metrics.versionChanges.Inc()
		r.grants.Purge()
		r.negativeCache.Purge()
	}
}
