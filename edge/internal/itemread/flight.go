package itemread

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"storefront.internal/shared/crashpoint"
	"storefront.internal/shared/fault"
)

// flight is one load of an item, for all who ask for it meanwhile.
type flight struct {
	done   chan struct{}
	answer answer
	hinted int64 // the revision that a hint named meanwhile; under Service.mu
}

// answer is how a load ended: a document, or an error; and which store told.
type answer struct {
	doc  *Document
	err  error
	from source
}

// Reasons for which a load has no answer.
var (
	errBusy   = errors.New("itemread: too many look-ups in flight")
	errBehind = errors.New("itemread: the store is behind what was answered")
)

// load takes the item from the stores, or from memory past its life when they do not answer or are slow.
func (s *Service) load(ctx context.Context, req Request, k Key, hash uint64, copied bool) (*Document, error) {
	f, leads := s.board(ctx, req, k, hash)
	a := s.await(ctx, f, k, hash, copied)
	if !leads && fault.Is(a.err, fault.RateLimited) { // that was the budget of somebody else
		f, _ = s.board(ctx, req, k, hash)
		a = s.await(ctx, f, k, hash, copied)
	}
	s.metrics.observe(a)
	return a.doc, a.err
}

// board returns the flight of the item, and starts one when there is none. It has a deadline of its own, so that one
// reader who gives up does not fail the others.
func (s *Service) board(ctx context.Context, req Request, k Key, hash uint64) (f *flight, leads bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.flights[k]; f != nil {
		return f, false
	}
	f = &flight{done: make(chan struct{})}
	s.flights[k] = f
	ctx = context.WithoutCancel(ctx)
	s.work.Go(func() { s.fly(ctx, f, req, k, hash) })
	return f, true
}

func (s *Service) fly(ctx context.Context, f *flight, req Request, k Key, hash uint64) {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	var fill *Version
	f.answer, fill = s.lookUp(ctx, req, k, hash)
	s.mu.Lock()
	delete(s.flights, k)
	hinted := f.hinted
	s.mu.Unlock()
	if hinted > 0 {
		s.memory.expire(hash, k, hinted)
	}
	close(f.done)
	if fill != nil {
		s.fill(ctx, k, *fill)
	}
}

// await waits for a flight: as long as it takes for a reader who would have nothing, and a moment for one who could have
// the copy past its life.
func (s *Service) await(ctx context.Context, f *flight, k Key, hash uint64, copied bool) answer {
	var enough <-chan time.Time
	if copied {
		t := time.NewTimer(patience)
		defer t.Stop()
		enough = t.C
	}
	select {
	case <-f.done:
		return f.answer
	case <-ctx.Done():
		return s.fallBack(k, hash, ctx.Err())
	case <-enough:
		return s.fallBack(k, hash, context.DeadlineExceeded)
	}
}

// fallBack serves what memory holds past its life, and prolongs it, so that readers do not wait for stores that do not
// answer more than once in a while.
func (s *Service) fallBack(k Key, hash uint64, cause error) answer {
	if e := s.memory.docs.get(hash, k); e != nil {
		if end := s.clock() + int64(lateLife); e.until.Load() < end {
			e.late.Store(true)
			e.until.Store(end)
		}
		return answer{doc: e.value, from: fromLate}
	}
	return answer{err: errUnavailable(cause), from: fromNowhere}
}

// lookUp asks Redis and then PostgreSQL. fill is what Redis should hold then.
func (s *Service) lookUp(ctx context.Context, req Request, k Key, hash uint64) (a answer, fill *Version) {
	defer func() {
		if p := recover(); p != nil { // a goroutine of its own: it would end the process
			s.metrics.panics.Inc()
			s.log.Error("panic in a look-up of an item", slog.String("type", fmt.Sprintf("%T", p)))
			a, fill = s.fallBack(k, hash, fmt.Errorf("itemread: panic in a look-up: %T", p)), nil
		}
	}()
	at := s.memory.mark(k)
	v, found, cacheErr := s.askCache(ctx, k)
	found = found && cacheErr == nil
	switch {
	case found && v.Revision >= at.revision && s.doubtful(at):
		return s.prove(ctx, req, k, hash, v, at)
	case found:
		if a, ok := s.take(k, hash, v, fromRedis, at.proven); ok {
			return a, nil
		}
	case at.revision == 0: // nobody knows yet whether it exists
		if err := s.overBudget(req); err != nil {
			return answer{err: err, from: fromNowhere}, nil
		}
	}
	v, found, err := s.askStore(ctx, k, 0)
	if err != nil {
		return s.fallBack(k, hash, errors.Join(err, cacheErr)), nil
	}
	return s.settle(req, k, hash, v, found)
}

// settle turns what PostgreSQL said into an answer.
func (s *Service) settle(req Request, k Key, hash uint64, v Version, found bool) (answer, *Version) {
	if !found {
		s.charge(req)
		s.memory.keepDeleted(hash, k, 0, 0, s.negativeEnd())
		return answer{err: errNotFound(), from: fromPostgres}, nil
	}
	a, ok := s.take(k, hash, v, fromPostgres, s.clock())
	if !ok {
		return s.fallBack(k, hash, errBehind), nil
	}
	return a, &v
}

// take turns a version into an answer and remembers it, unless it is older than what was answered already. What is not
// proven is asked for again soon.
func (s *Service) take(k Key, hash uint64, v Version, from source, proven int64) (answer, bool) {
	a, kept := answer{from: from}, false
	if v.deleted() {
		a.err = errNotFound()
		kept = s.memory.keepDeleted(hash, k, v.Revision, proven, s.negativeEnd())
	} else {
		life := s.ttl
		if proven == 0 {
			life = min(life, int64(lateLife))
		}
		a.doc, kept = s.memory.keep(hash, k, v, proven, s.clock()+life)
	}
	if !kept {
		s.metrics.behind[from].Inc()
	}
	return a, kept
}

func (s *Service) negativeEnd() int64 { return s.clock() + min(s.ttl, int64(negativeLife)) }

func (s *Service) askCache(ctx context.Context, k Key) (Version, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, cacheTimeout)
	defer cancel()
	return s.cache.Item(ctx, k)
}

// askStore waits a moment for its turn: a queue would only make everybody late.
func (s *Service) askStore(ctx context.Context, k Key, held int64) (Version, bool, error) {
	if err := s.enter(ctx); err != nil {
		return Version{}, false, err
	}
	defer s.leave()
	v, found, err := s.store.Item(ctx, k, held)
	if err == nil {
		s.doubt.answered(s.clock())
	}
	return v, found, err
}

func (s *Service) enter(ctx context.Context) error {
	select {
	case s.slots <- struct{}{}:
		return nil
	default:
	}
	t := time.NewTimer(slotWait)
	defer t.Stop()
	select {
	case s.slots <- struct{}{}:
		return nil
	case <-t.C:
		s.metrics.busy.Inc()
		return errBusy
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Service) leave() { <-s.slots }

// fill is a courtesy to the other edges; when it fails the next look-up asks PostgreSQL again.
func (s *Service) fill(ctx context.Context, k Key, v Version) {
	crashpoint.Hit(crashpoint.ItemLoaded)
	ctx, cancel := context.WithTimeout(ctx, cacheTimeout)
	defer cancel()
	if err := s.cache.Fill(ctx, k, v); err != nil {
		s.metrics.fillFailures.Inc()
	}
}

// overBudget refuses a look-up of a client, or of a key, that found nothing too often of late.
func (s *Service) overBudget(req Request) error {
	if s.misses == nil {
		return nil
	}
	v := s.misses.Charge(req.Client, 0)
	if v.Key.Remaining > 0 && v.Address.Remaining > 0 {
		return nil
	}
	s.metrics.overBudget.Inc()
	return &fault.Error{Code: fault.RateLimited, Detail: "Too many items that do not exist were asked for.", RetryAfter: time.Second}
}

func (s *Service) charge(req Request) {
	if s.misses != nil {
		s.misses.Charge(req.Client, 1)
	}
}
