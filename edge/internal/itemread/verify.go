package itemread

import (
	"context"
	"errors"
	"time"

	"storefront.internal/shared/breaker"
)

// needsVerification reports whether PostgreSQL has to confirm a version from Redis: the first one of the item
// in this process, and one that was not confirmed for verifyInterval. Redis may hold an older version than an
// edge answered or control pushed: a write found it full or down and is retried later, or it lost its last
// writes in a failover. A process that started since does not know of the answer.
func (s *Service) needsVerification(mark highWaterMark) bool {
	return mark.verifiedAt == 0 || s.clock()-mark.verifiedAt >= int64(verifyInterval)
}

// verify asks PostgreSQL whether the version in Redis is the newest; the body is read only when it is not.
// While PostgreSQL is down, the version from Redis is served for a second.
func (s *Service) verify(ctx context.Context, req Request, k Key, held Version,
	mark highWaterMark) (answer, *Version) {
	v, found, err := s.revisionFromStore(ctx, k, held.Revision)
	if err == nil {
		same := found && v.Revision == held.Revision
		if same {
			v = held
		}
		a, fill := s.acceptStored(req, k, v, found)
		if same {
			fill = nil
		}
		return a, fill
	}
	if mark.verifiedAt == 0 && !s.storeIsDown(ctx, err) {
		return s.serveStale(k, err), nil
	}
	a, ok := s.accept(k, held, sourceRedis, mark.verifiedAt)
	if !ok { // a newer version was answered meanwhile
		return s.serveStale(k, err), nil
	}
	if mark.verifiedAt == 0 {
		s.cfg.Metrics.unverified.Inc()
	}
	return a, nil
}

// storeIsDown reports whether the error shows that PostgreSQL is down. It does not when PostgreSQL answers
// others, nor when the time of the whole look-up is over: a question to PostgreSQL ends earlier, so this
// process stood still for seconds.
func (s *Service) storeIsDown(ctx context.Context, err error) bool {
	overloaded := errors.Is(err, errBusy) && time.Duration(s.clock()-s.answeredAt.Load()) < verifyTimeout
	return !overloaded && ctx.Err() == nil
}

// revisionFromStore asks a second time when PostgreSQL fails at once: its sessions may have been ended, which
// is no outage. After a timeout the breaker spares other readers the wait, and the reader that probes waits
// no longer than for a document past its time, since it has the version from Redis.
func (s *Service) revisionFromStore(ctx context.Context, k Key,
	held int64) (v Version, found bool, err error) {
	limit := verifyTimeout
	if s.breaker.State() != breaker.Closed {
		limit = staleWait
	}
	err = s.breaker.Do(ctx, limit, func(ctx context.Context) (err error) {
		for range 2 {
			v, found, err = s.fromStore(ctx, k, held)
			if err == nil || ctx.Err() != nil || errors.Is(err, errBusy) {
				break
			}
		}
		return err
	})
	return v, found, err
}
