package intake

import (
	"context"
	"log/slog"

	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
)

// consultLedger asks the ledger about the claims that the attempt holds and whose signals Redis may have forgotten:
// those that occurred outside the recent half of a claim's life, and all of them while Redis is cold.
//
// It asks after claiming, not before. Asked before, the ledger may say no, another request may record the signal, and
// its claim may be forgotten (Redis flushed, or its life over) before ours is taken: we would record it again and say
// accepted. With the claim in hand nobody else records the signal, so whatever was recorded was recorded earlier, and
// is seen here as soon as the relay stored it. What the ledger knows is a duplicate. Its claim stays with this
// attempt: done is true of it, and after released whoever comes next asks again.
//
// When the ledger cannot be asked: a signal that is only old is taken without it, since losing it is worse than a
// second "accepted" and the ledger counts it once all the same; a cold Redis needs the ledger, as everything in it
// would be told wrong: 503.
func (s *Service) consultLedger(ctx context.Context, w *work, c *contender) *fault.Error {
	cold, err := s.isCold(ctx, c)
	if err != nil {
		return s.unavailable(causeClaims, err)
	}
	var ids []ident.SignalID
	var at []int
	for i, state := range c.states {
		sig := &w.judged[w.first[i]].signal
		if state == mine && (cold || !remembered(sig.OccurredAt, w.now)) {
			ids, at = append(ids, sig.ID), append(at, i)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	stored, err := s.cfg.Ledger.Known(ctx, w.req.ConnectionID, ids)
	if err == nil && len(stored) == len(ids) {
		s.cfg.Metrics.lookups.WithLabelValues("answered").Inc()
		for k, yes := range stored {
			if yes {
				c.states[at[k]] = known
				c.holds = true
			}
		}
		return nil
	}
	if cold {
		s.cfg.Metrics.lookups.WithLabelValues("refused").Inc()
		return s.unavailable(causeLedger, err)
	}
	s.cfg.Metrics.lookups.WithLabelValues("skipped").Inc()
	s.cfg.Logger.Warn("ledger not asked about old signals", slog.Any("error", err), slog.Int("signals", len(ids)))
	return nil
}

// isCold says whether Redis forgot claims, and marks a Redis that nobody marked: as cold, unless the store holds no
// signal that is younger than a claim's life, so that there was nothing to forget.
func (s *Service) isCold(ctx context.Context, c *contender) (bool, error) {
	s.cfg.Metrics.temperature(c.epoch)
	if c.epoch != Unmarked {
		return c.epoch == Cold, nil
	}
	recent, err := s.cfg.Ledger.RecentlyStored(ctx, ClaimLife)
	cold := err != nil || recent
	if err := s.cfg.Claims.MarkEpoch(ctx, c.keys, !cold); err != nil {
		return cold, err
	}
	if cold {
		s.cfg.Logger.Warn("Redis holds no claims of before: asking the ledger too", slog.Duration("for", ClaimLife))
		return true, nil
	}
	s.cfg.Metrics.temperature(Warm)
	return false, nil
}
