package itemread

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// doubtful reports whether a version from Redis is to be proven: the first one that this process meets of an item, and
// one that nobody was asked about for long. Redis may hold an older version than an edge has answered, or than was pushed:
// a write found it full or away and is tried again later, or it came back without its last writes. A process that began
// since does not know of that answer.
func (s *Service) doubtful(at mark) bool {
	return at.proven == 0 || s.clock()-at.proven >= int64(proofLife)
}

// prove asks PostgreSQL whether the version that Redis holds is the newest; its body is read only when it is not. While
// PostgreSQL is away the version is believed, for a second.
func (s *Service) prove(ctx context.Context, req Request, k Key, hash uint64, held Version, at mark) (answer, *Version) {
	err := errAway
	if s.doubt.ask(s.clock()) {
		var v Version
		var found bool
		if v, found, err = s.askFor(ctx, k, held.Revision); err == nil {
			same := found && v.Revision == held.Revision
			if same {
				v = held
			}
			a, fill := s.settle(req, k, hash, v, found)
			if same {
				fill = nil
			}
			return a, fill
		}
	}
	if at.proven == 0 && s.doubt.busy(err, s.clock()) {
		return s.fallBack(k, hash, err), nil
	}
	a, ok := s.take(k, hash, held, fromRedis, at.proven)
	switch {
	case !ok: // somebody answered a newer one meanwhile
		return s.fallBack(k, hash, err), nil
	case at.proven == 0:
		s.metrics.unproven.Inc()
	}
	return a, nil
}

// askFor asks twice when PostgreSQL refuses at once: its sessions may have been ended, which is no outage.
func (s *Service) askFor(ctx context.Context, k Key, held int64) (v Version, found bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, proofTimeout)
	defer cancel()
	for range 2 {
		v, found, err = s.askStore(ctx, k, held)
		if err == nil || ctx.Err() != nil || errors.Is(err, errBusy) {
			break
		}
	}
	if err != nil && ctx.Err() != nil {
		s.doubt.hung(s.clock())
	}
	return v, found, err
}

// errAway says that PostgreSQL was not asked, because it did not answer of late.
var errAway = errors.New("itemread: the store does not answer")

// doubt remembers whether PostgreSQL answers, so that not every reader waits for one that hangs. All times are of the
// service's clock.
type doubt struct {
	last  atomic.Int64 // when it answered
	until atomic.Int64 // nobody asks before; 0: it answers
}

func (d *doubt) answered(now int64) {
	d.last.Store(now)
	if d.until.Load() != 0 {
		d.until.Store(0)
	}
}

func (d *doubt) hung(now int64) { d.until.Store(now + int64(lateLife)) }

// ask reports whether to ask. Of a store that hung one at a time finds out whether it is back.
func (d *doubt) ask(now int64) bool {
	until := d.until.Load()
	return until == 0 || now >= until && d.until.CompareAndSwap(until, now+int64(proofTimeout))
}

// busy reports whether a failure says no more than that many ask a store that answers.
func (d *doubt) busy(err error, now int64) bool {
	return errors.Is(err, errBusy) && time.Duration(now-d.last.Load()) < proofTimeout
}
