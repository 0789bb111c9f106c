package intake

import (
	"math/rand/v2"
	"time"

	"storefront.internal/edge/internal/claims"
	"storefront.internal/edge/internal/ratelimit"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
)

// ClaimQuota is the bucket that bounds the live claims of one connection: it begins with half of them, and
// the other half comes back over the life of a claim. So no hour has more than the bound.
func ClaimQuota(live int) ratelimit.Quota {
	half := max(1, live/2)
	return ratelimit.Quota{PerSecond: float64(half) / claims.ClaimTTL.Seconds(), Burst: half}
}

// subject is whose claims are counted: the connection's, with all its keys and clients.
func (sc *scratch) subject() ratelimit.Subject {
	return ratelimit.Subject{Key: ident.KeyID(sc.req.ConnectionID)}
}

// checkQuota refuses a batch of a connection that has used up its claims, before anything is claimed. Also a
// resend is refused: only Redis knows that it is one.
func (s *Service) checkQuota(sc *scratch) *fault.Error {
	if s.cfg.Quota == nil {
		return nil
	}
	wait := s.cfg.Quota.Charge(sc.subject(), 0).Key.Wait
	if wait <= 0 {
		return nil
	}
	s.cfg.Metrics.overQuota.Inc()
	f := fault.New(fault.RateLimited, "This connection has recorded as many signals in the last hour as it "+
		"may. Keep the batch and send it again.")
	f.RetryAfter = max(wait, quotaRetryAfter) + rand.N(quotaRetryAfter)
	return f
}

// quotaRetryAfter is the shortest Retry-After: the quota fills for an hour, so an early resend gains nothing.
const quotaRetryAfter = 10 * time.Second

// chargeQuota counts the claims that the attempt has made.
func (s *Service) chargeQuota(sc *scratch) {
	if s.cfg.Quota == nil {
		return
	}
	made := 0
	for i := range sc.valid {
		if sc.attempt.State(i) == claims.Held {
			made++
		}
	}
	if made > 0 {
		s.cfg.Quota.Charge(sc.subject(), made)
	}
}
