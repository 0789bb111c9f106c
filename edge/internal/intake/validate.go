package intake

import (
	"log/slog"
	"slices"

	"storefront.internal/edge/internal/claims"
	"storefront.internal/shared/signal"
)

// validate fills the results that need no store: rejected elements, and elements that repeat a signal of the
// batch. Of several valid elements with one id the first counts. The others are duplicates: if the batch is
// answered at all, the first one is recorded.
func (s *Service) validate(sc *scratch) {
	sc.rules = s.rules.Validator(&sc.decoder, sc.req.ConnectionID)
	v := &sc.rules
	var visitors, clients int // discarded
	for i := range sc.results {
		r, e, out := &sc.results[i], sc.decoder.Element(i), &sc.checked[i]
		r.Index = i
		if reason := v.Validate(e, out); reason != "" {
			r.Status, r.Reason = signal.Rejected, reason
			r.SignalID, r.HasSignalID = v.SentID(e)
			continue
		}
		r.SignalID, r.HasSignalID = string(out.Signal.ID), true
		if out.DiscardedVisitor {
			visitors++
		}
		if out.DiscardedClient {
			clients++
		}
		key := claims.Key(signal.LedgerDigest(sc.req.ConnectionID, out.Signal.ID))
		if slices.Contains(sc.keys, key) {
			r.Status = signal.Duplicate
			continue
		}
		sc.valid = append(sc.valid, i)
		sc.keys = append(sc.keys, key)
	}
	s.warnDiscarded(sc, "visitor", visitors)
	s.warnDiscarded(sc, "client", clients)
}

// warnDiscarded reports that n signals lost a malformed field. It names the field and never its value.
func (s *Service) warnDiscarded(sc *scratch, field string, n int) {
	if n == 0 {
		return
	}
	s.cfg.Metrics.discarded.WithLabelValues(field).Add(float64(n))
	s.logs.Log(s.cfg.Logger, slog.LevelWarn, field, "malformed field discarded from signals",
		slog.String("field", field), slog.Int("signals", n),
		slog.String("connection_id", string(sc.req.ConnectionID)))
}
