package intake

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"storefront.internal/edge/internal/claims"
	"storefront.internal/shared/failpoint"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/signal"
	"storefront.internal/shared/stream"
)

// recordValid claims the valid signals, hands the new ones to Kafka and confirms. It fills the remaining
// results.
func (s *Service) recordValid(ctx context.Context, sc *scratch) *fault.Error {
	if bad := s.checkQuota(sc); bad != nil {
		return bad
	}
	failpoint.Hit(failpoint.IntakeBeforeClaim)
	a := &sc.attempt
	s.claimer.Start(a, sc.keys)
	if err := s.claimer.Claim(ctx, a); err != nil {
		if errors.Is(err, claims.ErrHeld) {
			return s.unavailable(causeDeadline, err)
		}
		return s.unavailable(causeClaims, err)
	}
	s.chargeQuota(sc)
	if bad := s.checkLedger(ctx, sc); bad != nil {
		s.claimer.ReleaseLater(a)
		return bad
	}
	failpoint.Hit(failpoint.IntakeClaimed)
	if a.HasNew() {
		if err := s.produce(ctx, sc); err != nil {
			s.claimer.Release(ctx, a)
			return s.unavailable(causeProduce, err)
		}
		failpoint.Hit(failpoint.IntakeProduced)
	}
	if a.HoldsClaims() {
		if err := s.claimer.Confirm(ctx, a); err != nil {
			return s.unavailable(causeLost, err)
		}
		failpoint.Hit(failpoint.IntakeConfirmed)
	}
	for i, position := range sc.valid {
		sc.results[position].Status = signal.Duplicate
		if a.State(i) == claims.Held {
			sc.results[position].Status = signal.Accepted
		}
	}
	return nil
}

// produce sends the new signals as one record, so that all of them are stored or none. After an error the
// record may still be stored; the ledger counts each signal once, whether or not it is sent again.
func (s *Service) produce(ctx context.Context, sc *scratch) error {
	r := &sc.record
	r.RecordID = uuid.UUID(ident.UUIDv7(sc.now)).String()
	r.ConnectionID, r.StoreID = sc.req.ConnectionID, sc.req.StoreID
	r.ReceivedAt, r.Audit = sc.req.ReceivedAt, sc.req.Audit
	for i, position := range sc.valid {
		if sc.attempt.State(i) == claims.Held {
			r.Signals = append(r.Signals,
				signal.Recorded{Index: position, Signal: sc.checked[position].Signal})
		}
	}
	buf := s.values.Get().(*[]byte)
	write := signal.AppendRecord
	if s.cfg.Compact {
		write = signal.AppendCompact
	}
	value := write((*buf)[:0], r)
	outcome, err := s.cfg.Producer.Produce(ctx, r.ConnectionID, value)
	switch outcome {
	case stream.Acknowledged:
		*buf = value
		s.values.Put(buf)
		s.cfg.Metrics.acknowledged.Inc()
		return nil
	case stream.Refused:
		s.cfg.Metrics.produced.WithLabelValues("refused").Inc()
	default:
		s.cfg.Metrics.produced.WithLabelValues("unknown").Inc()
	}
	if err == nil {
		err = errors.New("intake: Kafka did not acknowledge the record")
	}
	return err
}
