package itemread

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"storefront.internal/shared/failpoint"
	"storefront.internal/shared/fault"
)

// load is one look-up of an item in the stores, for all readers that ask for it meanwhile (singleflight).
type load struct {
	done        chan struct{}
	answer      answer
	invalidated int64 // the greatest revision that a hint named meanwhile; guarded by Service.mu
}

// answer is how a load ended: with a document or an error; from is the store that decided.
type answer struct {
	doc  *Document
	err  error
	from source
}

// The reasons for which the store has no answer.
var (
	errBusy        = errors.New("itemread: too many look-ups in flight")
	errStoreBehind = errors.New("itemread: the store is behind what was answered")
)

// readThrough reads the item from the stores. It serves a document past its time when they do not answer or
// are slow.
func (s *Service) readThrough(ctx context.Context, req Request, k Key, cached bool) (*Document, error) {
	l, first := s.join(ctx, req, k)
	a := s.wait(ctx, l, k, cached)
	if !first && fault.Is(a.err, fault.RateLimited) { // the budget of the reader that started the load
		l, _ = s.join(ctx, req, k)
		a = s.wait(ctx, l, k, cached)
	}
	s.cfg.Metrics.observe(a)
	return a.doc, a.err
}

// join returns the load of the item, and starts one when none is running. The load has its own deadline, so
// that one reader that gives up does not fail the others.
func (s *Service) join(ctx context.Context, req Request, k Key) (l *load, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.loads[k]; l != nil {
		return l, false
	}
	l = &load{done: make(chan struct{})}
	s.loads[k] = l
	ctx = context.WithoutCancel(ctx)
	s.running.Go(func() { s.run(ctx, l, req, k) })
	return l, true
}

func (s *Service) run(ctx context.Context, l *load, req Request, k Key) {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	var fill *Version
	l.answer, fill = s.lookUp(ctx, req, k)
	s.mu.Lock()
	delete(s.loads, k)
	invalidated := l.invalidated
	s.mu.Unlock()
	if invalidated > 0 {
		s.memory.invalidate(k, invalidated)
	}
	close(l.done)
	if fill != nil {
		s.fill(ctx, k, *fill)
	}
}

// wait waits for the load: at most staleWait when memory holds a document past its time, else until ctx ends.
func (s *Service) wait(ctx context.Context, l *load, k Key, cached bool) answer {
	var enough <-chan time.Time
	if cached {
		t := time.NewTimer(staleWait)
		defer t.Stop()
		enough = t.C
	}
	select {
	case <-l.done:
		return l.answer
	case <-ctx.Done():
		return s.serveStale(k, ctx.Err())
	case <-enough:
		return s.serveStale(k, context.DeadlineExceeded)
	}
}

// serveStale answers with what memory holds past its time, or with the cause.
func (s *Service) serveStale(k Key, cause error) answer {
	now := s.clock()
	if d := s.memory.serveStale(k, now+int64(staleTTL)); d.doc != nil {
		s.cfg.Metrics.observeStale(now - d.fresh)
		return answer{doc: d.doc, from: sourceStale}
	}
	return answer{err: errUnavailable(cause), from: sourceNone}
}

// lookUp asks Redis and then PostgreSQL. fill is what Redis should hold afterwards; nil when it holds it.
func (s *Service) lookUp(ctx context.Context, req Request, k Key) (a answer, fill *Version) {
	defer func() {
		if p := recover(); p != nil { // in a goroutine of its own it would end the process
			s.cfg.Metrics.panics.Inc()
			s.logs.Log(s.cfg.Logger, slog.LevelError, struct{}{}, "panic in a look-up of an item",
				slog.String("type", fmt.Sprintf("%T", p)))
			a, fill = s.serveStale(k, fmt.Errorf("itemread: panic in a look-up: %T", p)), nil
		}
	}()
	mark := s.memory.mark(k)
	v, found, cacheErr := s.fromCache(ctx, k)
	found = found && cacheErr == nil
	switch {
	case found && v.Revision >= mark.revision && s.needsVerification(mark):
		return s.verify(ctx, req, k, v, mark)
	case found:
		if a, ok := s.accept(k, v, sourceRedis, mark.verifiedAt); ok {
			return a, nil
		}
	case mark.revision == 0: // the item may not exist
		if err := s.checkMisses(req); err != nil {
			return answer{err: err, from: sourceNone}, nil
		}
	}
	v, found, err := s.readStore(ctx, k)
	if err != nil {
		return s.serveStale(k, errors.Join(err, cacheErr)), nil
	}
	return s.acceptStored(req, k, v, found)
}

// acceptStored turns what PostgreSQL returned into an answer.
func (s *Service) acceptStored(req Request, k Key, v Version, found bool) (answer, *Version) {
	if !found {
		if s.cfg.Misses != nil {
			s.cfg.Misses.Charge(req.Client, 1)
		}
		s.memory.putDeleted(k, 0, 0, s.negativeUntil())
		return answer{err: errNotFound(), from: sourcePostgres}, nil
	}
	a, ok := s.accept(k, v, sourcePostgres, s.clock())
	if !ok {
		return s.serveStale(k, errStoreBehind), nil
	}
	return a, &v
}

// accept remembers a version and turns it into an answer, unless a newer one was answered already. What was
// never verified is kept for a short time only.
func (s *Service) accept(k Key, v Version, from source, verifiedAt int64) (a answer, ok bool) {
	a.from = from
	if v.deleted() {
		a.err = errNotFound()
		ok = s.memory.putDeleted(k, v.Revision, verifiedAt, s.negativeUntil())
	} else {
		ttl := int64(s.cfg.TTL)
		if verifiedAt == 0 {
			ttl = min(ttl, int64(staleTTL))
		}
		a.doc, ok = s.memory.put(k, v, verifiedAt, s.clock()+ttl)
	}
	if !ok {
		s.cfg.Metrics.behind[from].Inc()
	}
	return a, ok
}

func (s *Service) negativeUntil() int64 { return s.clock() + min(int64(s.cfg.TTL), int64(negativeTTL)) }

func (s *Service) fromCache(ctx context.Context, k Key) (Version, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, cacheTimeout)
	defer cancel()
	return s.cfg.Cache.Item(ctx, k)
}

// readStore reads a version that Redis does not have, unless PostgreSQL timed out lately.
func (s *Service) readStore(ctx context.Context, k Key) (v Version, found bool, err error) {
	err = s.breaker.Do(ctx, verifyTimeout, func(ctx context.Context) (err error) {
		v, found, err = s.fromStore(ctx, k, 0)
		return err
	})
	return v, found, err
}

func (s *Service) fromStore(ctx context.Context, k Key, held int64) (Version, bool, error) {
	if err := s.acquireSlot(ctx); err != nil {
		return Version{}, false, err
	}
	defer s.slots.Release(1)
	v, found, err := s.cfg.Store.Item(ctx, k, held)
	if err == nil {
		s.answeredAt.Store(s.clock())
	}
	return v, found, err
}

// acquireSlot waits for a slot only for a short time, because a long queue would make every look-up late.
func (s *Service) acquireSlot(ctx context.Context) error {
	waitCtx, cancel := context.WithTimeout(ctx, slotWait)
	defer cancel()
	switch {
	case s.slots.Acquire(waitCtx, 1) == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	s.cfg.Metrics.busy.Inc()
	return errBusy
}

// fill copies a version into Redis for the other edges. When it fails, the next look-up asks PostgreSQL
// again.
func (s *Service) fill(ctx context.Context, k Key, v Version) {
	failpoint.Hit(failpoint.ItemLoaded)
	ctx, cancel := context.WithTimeout(ctx, cacheTimeout)
	defer cancel()
	if err := s.cfg.Cache.Fill(ctx, k, v); err != nil {
		s.cfg.Metrics.fillFailures.Inc()
	}
}

// checkMisses refuses the look-up when the client or the key had too many look-ups that found nothing.
func (s *Service) checkMisses(req Request) error {
	if s.cfg.Misses == nil {
		return nil
	}
	v := s.cfg.Misses.Charge(req.Client, 0)
	if v.Key.Remaining > 0 && v.Address.Remaining > 0 {
		return nil
	}
	s.cfg.Metrics.overBudget.Inc()
	return &fault.Error{Code: fault.RateLimited, Detail: "Too many items that do not exist were asked for.",
		RetryAfter: time.Second}
}
