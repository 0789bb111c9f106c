package intake

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"storefront.internal/edge/internal/deadline"
	"storefront.internal/shared/crashpoint"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/signal"
	"storefront.internal/shared/stream"
)

// markPatience bounds writing a register once the request's own deadline does not matter any more.
const markPatience = 500 * time.Millisecond

// settle claims the batch's sound signals, hands the new ones off and confirms. It fills the results that judge left.
func (s *Service) settle(ctx context.Context, w *work) *fault.Error {
	crashpoint.Hit(crashpoint.IntakeBeforeClaim)
	c := &w.claims
	c.contend(s.nextAttempt(), w.keys)
	if err := s.acquirer.acquire(ctx, c); err != nil {
		if errors.Is(err, errPatience) {
			return s.unavailable(causePatience, err)
		}
		return s.unavailable(causeClaims, err)
	}
	if bad := s.consultLedger(ctx, w, c); bad != nil {
		s.marker.later(c.attempt, Released)
		return bad
	}
	crashpoint.Hit(crashpoint.IntakeClaimed)
	if bad := s.record(ctx, w, c); bad != nil {
		return bad
	}
	for i, at := range w.first {
		w.results[at].Status = statusOf(c.states[i])
	}
	return nil
}

// statusOf is the word for a signal once the batch is recorded.
func statusOf(s claimState) signal.Status {
	if s == mine {
		return signal.Accepted
	}
	return signal.Duplicate
}

// record hands off what the attempt holds, in one record, and writes the attempt's register. Claims of signals that
// the ledger knew are the attempt's too: done is true of them as well.
func (s *Service) record(ctx context.Context, w *work, c *contender) *fault.Error {
	holds := c.holds
	if c.owns() {
		if err := s.handOff(ctx, w, c); err != nil {
			s.release(ctx, c.attempt)
			return s.unavailable(causeProduce, err)
		}
		crashpoint.Hit(crashpoint.IntakeProduced)
		holds = true
	}
	if holds {
		if bad := s.confirm(ctx, c.attempt, w.began); bad != nil {
			return bad
		}
		crashpoint.Hit(crashpoint.IntakeConfirmed)
	}
	return nil
}

// handOff sends the new signals as one record, so that they are stored all or none. An error is a refusal or an
// unknown outcome: what landed after all is counted once by the ledger, whether or not it is sent again.
func (s *Service) handOff(ctx context.Context, w *work, c *contender) error {
	r := &w.record
	r.RecordID = uuid.UUID(ident.UUIDv7(w.now)).String()
	r.ConnectionID, r.StoreID, r.ReceivedAt, r.Audit = w.req.ConnectionID, w.req.StoreID, w.req.ReceivedAt, w.req.Audit
	for i, at := range w.first {
		if c.states[i] == mine {
			r.Signals = append(r.Signals, signal.Recorded{Index: at, Signal: w.judged[at].signal})
		}
	}
	buf := s.values.Get().(*[]byte)
	value := signal.AppendRecord((*buf)[:0], r)
	outcome, err := s.cfg.Producer.Produce(ctx, value)
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

// confirm writes done. That Redis fails to take it changes nothing of the answer: the signals are safe. But another
// attempt that took over may have recorded them too and said so; then this one does not say it a second time. When
// Redis does not answer and so much time went by that somebody may have taken over (this process was stopped, say),
// nobody knows which of the two it is, and the client hears 503: a resend finds out.
func (s *Service) confirm(ctx context.Context, attempt string, began time.Time) *fault.Error {
	previous, err := s.mark(ctx, attempt, Done)
	if err != nil && time.Since(began) > s.cfg.Deadline {
		previous, err = s.mark(ctx, attempt, Done) // the time may have run out while the process was stopped
	}
	switch {
	case err == nil && previous == Lost:
		return s.unavailable(causeLost, errors.New("intake: the attempt was taken over"))
	case err == nil:
		return nil
	}
	s.marker.later(attempt, Done)
	if time.Since(began) > lease-markPatience {
		return s.unavailable(causeLost, err)
	}
	s.cfg.Logger.Warn("attempt confirmed later", slog.String("error", err.Error()))
	return nil
}

// release opens the attempt's claims to everybody, so that a resend is taken at once.
func (s *Service) release(ctx context.Context, attempt string) {
	if _, err := s.mark(ctx, attempt, Released); err != nil {
		s.marker.later(attempt, Released)
	}
}

// mark writes a register even when the request's deadline is over.
func (s *Service) mark(ctx context.Context, attempt string, state Register) (Register, error) {
	patience := deadline.New(context.WithoutCancel(ctx), time.Now().Add(markPatience))
	defer patience.End()
	var previous [1]Register
	err := s.cfg.Claims.Mark(patience, []string{attempt}, state, previous[:])
	return previous[0], err
}
