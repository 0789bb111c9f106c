package access

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Run polls both stores for the version of the keys until the context ends. Each store has a loop of its own, so that
// one which hangs does not silence the other.
func (g *Gate) Run(ctx context.Context) error {
	store, cache := make(chan struct{}, 1), make(chan struct{}, 1)
	var wg sync.WaitGroup
	wg.Go(func() { g.loop(ctx, store, "store", g.pollStore) })
	wg.Go(func() { g.loop(ctx, cache, "cache", g.pollCache) })
	for {
		select {
		case <-ctx.Done():
			wg.Wait()
			return nil
		case <-g.nudged:
			wake(store)
			wake(cache)
		}
	}
}

// Nudge asks for a poll at once: somebody says that the keys changed. It is a hint only, and never blocks.
func (g *Gate) Nudge() { wake(g.nudged) }

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // one is waiting already
	}
}

func (g *Gate) loop(ctx context.Context, nudged <-chan struct{}, name string, poll func(context.Context) error) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	failing := false
	for {
		pollCtx, cancel := context.WithTimeout(ctx, pollTimeout)
		err := poll(pollCtx)
		cancel()
		if ctx.Err() != nil {
			return
		}
		g.observe(name, err, &failing)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-nudged:
		}
	}
}

// observe counts failures, and logs a change from one to the other rather than every poll.
func (g *Gate) observe(name string, err error, failing *bool) {
	if err != nil {
		g.metrics.pollFailures.WithLabelValues(name).Inc()
	}
	if (err != nil) == *failing {
		return
	}
	*failing = err != nil
	if *failing {
		g.log.Warn("key version cannot be read", slog.String("from", name), slog.Any("error", err))
	} else {
		g.log.Info("key version can be read", slog.String("from", name))
	}
}

// pollStore and pollCache confirm as of the moment in which they asked: the answer may have waited on its way.

func (g *Gate) pollStore(ctx context.Context) error {
	at := g.now()
	version, err := g.store.Version(ctx)
	if err != nil {
		return err
	}
	g.moved(g.state.storeTold(version, at))
	return nil
}

func (g *Gate) pollCache(ctx context.Context) error {
	at := g.now()
	version, known, err := g.cache.Version(ctx)
	if err != nil {
		return err
	}
	g.moved(g.state.cacheTold(version, known, at))
	return nil
}

// moved frees what the new generation has made worthless already.
func (g *Gate) moved(yes bool) {
	if yes {
		g.metrics.versionMoves.Inc()
		g.known.clear()
		g.refused.clear()
	}
}
