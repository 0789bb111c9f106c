package intake

import (
	"context"
	"log/slog"
	"time"

	"storefront.internal/edge/internal/claims"
	"storefront.internal/shared/backoff"
	"storefront.internal/shared/breaker"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
)

// checkLedger asks the ledger about held claims whose signals Redis may have forgotten: those that are not
// recent, and all of them while Redis has recently lost its memory. What the ledger knows is a duplicate.
//
// It asks after claiming. If it asked before, the ledger could say no, another request could record the
// signal, and that request's claim could be forgotten before this request claims: the signal would be
// accepted twice. While this request holds the claim, no other one records the signal; so whatever was
// recorded was recorded earlier, and the ledger has it as soon as the relay stored it.
//
// When the ledger does not answer in time, a signal that is only old is recorded without it: to lose a signal
// is worse than a second accepted, and the ledger counts it once all the same. A Redis that lost its memory
// needs the ledger, as every answer could be wrong: 503.
func (s *Service) checkLedger(ctx context.Context, sc *scratch) *fault.Error {
	a := &sc.attempt
	until := time.Now().Add(ledgerTimeout)
	lost, err := s.memoryLost(ctx, a, until)
	if err != nil {
		return s.unavailable(causeClaims, err)
	}
	var ids []ident.SignalID
	var indexes []int
	for i, position := range sc.valid {
		sig := &sc.checked[position].Signal
		if a.State(i) == claims.Held && (lost || !recent(sig.OccurredAt, sc.now)) {
			ids, indexes = append(ids, sig.ID), append(indexes, i)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	known, err := s.known(ctx, sc.req.ConnectionID, ids, until)
	if err == nil && len(known) == len(ids) {
		s.cfg.Metrics.lookups.WithLabelValues("answered").Inc()
		for i, index := range indexes {
			if known[i] {
				a.SetRecorded(index)
			}
		}
		return nil
	}
	if lost {
		s.cfg.Metrics.lookups.WithLabelValues("refused").Inc()
		return s.unavailable(causeLedger, err)
	}
	s.cfg.Metrics.lookups.WithLabelValues("skipped").Inc()
	s.logs.Log(s.cfg.Logger, slog.LevelWarn, "ledger",
		"old signals are recorded without the ledger, which does not answer", slog.Any("error", err),
		slog.Int("signals", len(ids)))
	return nil
}

// ledgerTimeout bounds the look-ups of one request together. They take about a millisecond, and the answer
// only chooses between two words for a signal that is stored once in any case, so a ledger that hangs may not
// delay it for longer than a shopper notices.
const ledgerTimeout = 300 * time.Millisecond

// newLedgerBreaker returns the breaker of the look-ups. Three timeouts in a row, with no answer in between,
// are a ledger that hangs: one alone may be a moment of overload, and while Redis lacks its claims each
// skipped look-up is a 503. From then on one request a second finds out whether the ledger answers again.
func newLedgerBreaker() *breaker.Breaker {
	return breaker.New(breaker.Config{Failures: 3,
		Open:         backoff.Policy{Min: time.Second, Max: time.Second},
		ProbeTimeout: 2 * ledgerTimeout})
}

// known is Ledger.Known, until the given time at the latest, and not at all while the ledger hangs.
func (s *Service) known(ctx context.Context, c ident.ConnectionID, ids []ident.SignalID,
	until time.Time) (known []bool, err error) {
	err = s.ledger.Do(ctx, time.Until(until), func(ctx context.Context) (err error) {
		known, err = s.cfg.Ledger.Known(ctx, c, ids)
		return err
	})
	return known, err
}

// recentlyStored is Ledger.RecentlyStored with the same bounds.
func (s *Service) recentlyStored(ctx context.Context, until time.Time) (stored bool, err error) {
	err = s.ledger.Do(ctx, time.Until(until), func(ctx context.Context) (err error) {
		stored, err = s.cfg.Ledger.RecentlyStored(ctx, claims.ClaimTTL)
		return err
	})
	return stored, err
}

// recent reports whether Redis still has the claim of a signal that occurred then. Only the first half of
// ClaimTTL counts as recent, so that a shopper's clock may be wrong by the other half. A signal from the
// future has a wrong clock too, unless it is ahead by less than the usual difference between clocks.
func recent(occurred, now time.Time) bool {
	const clockSkew = time.Minute
	return occurred.After(now.Add(-claims.ClaimTTL/2)) && !occurred.After(now.Add(clockSkew))
}

// memoryLost reports whether Redis lost claims within ClaimTTL. When Redis has no epoch it starts one: as
// complete if no signal was stored within ClaimTTL, as then there was nothing to lose.
func (s *Service) memoryLost(ctx context.Context, a *claims.Attempt, until time.Time) (bool, error) {
	lost := a.Memory() != claims.Known
	if a.Memory() == claims.Unknown {
		stored, err := s.recentlyStored(ctx, until)
		lost = err != nil || stored
		if err := s.cfg.Claims.StartEpoch(ctx, a.Keys(), !lost); err != nil {
			s.cfg.Metrics.setCold(true)
			return true, err
		}
		if lost {
			s.logs.Log(s.cfg.Logger, slog.LevelWarn, "epoch",
				"Redis has lost its claims: the ledger is asked too", slog.Duration("for", claims.ClaimTTL))
		}
	}
	s.cfg.Metrics.setCold(lost)
	return lost, nil
}
