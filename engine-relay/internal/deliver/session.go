package deliver

import (
	"context"
	"slices"
	"time"

	"storefront.internal/shared/breaker"
	"storefront.internal/shared/deliveries"
	"storefront.internal/shared/failpoint"
	"storefront.internal/shared/service"
)

// session sends the deliveries of lanes that were leased together.
type session struct {
	w               *Worker
	kind            deliveries.Kind
	isolated        bool // a retry lane, leased alone
	lanes           []deliveries.LaneCompletion
	leaseEnds       time.Time
	refusalsAtLease int64 // Worker.refusals before the lease was asked for
	probe           bool  // the next request probes a refused credential
}

func newSession(w *Worker, leases []*deliveries.Lease, ends time.Time, refusals int64) *session {
	s := &session{
		w: w, kind: leases[0].Kind, isolated: leases[0].Isolated, probe: leases[0].Probe, leaseEnds: ends,
		refusalsAtLease: refusals, lanes: make([]deliveries.LaneCompletion, len(leases)),
	}
	for i, l := range leases {
		s.lanes[i].Lease = l
	}
	return s
}

// delivery is an entry with the lane that it belongs to.
type delivery struct {
	deliveries.LeasedEntry
	lane *deliveries.LaneCompletion
}

// run sends until every delivery has an outcome, one has to wait, or the lease is too short for another
// request. A delivery without an outcome returns to the queue unchanged.
func (s *session) run(ctx context.Context) {
	send, cancel := service.WithGracePeriod(ctx, s.w.cfg.StopGrace)
	defer cancel()
	defer s.returnProbe(ctx)
	batches := s.batches()
	for len(batches) > 0 {
		if ctx.Err() != nil || s.revoked() || time.Until(s.leaseEnds) < s.w.cfg.Timeout+leaseMargin {
			return
		}
		batch := batches[len(batches)-1]
		batches = batches[:len(batches)-1]
		reply := s.send(send, batch)
		class := s.guard(classify(s.kind, reply), reply, batch)
		s.recordReply(ctx, class, reply)
		if class == malformed && len(batch) > 1 {
			half := len(batch) / 2
			batches = append(batches, batch[half:], batch[:half])
			continue
		}
		if !s.applyReply(class, reply, batch) {
			return
		}
	}
}

// revoked reports whether the engine refused the credential since the lease was asked for. A probe ignores
// that: the late answer to an older request must not keep it from being sent.
func (s *session) revoked() bool { return !s.probe && s.w.refusals.Load() != s.refusalsAtLease }

// returnProbe allows another probe at once when this lease did not send the one that it had. Otherwise the
// operator's resume would have no effect until the end of the lease.
func (s *session) returnProbe(ctx context.Context) {
	if !s.probe {
		return
	}
	err := s.w.withTimeout(context.WithoutCancel(ctx), func(ctx context.Context) error {
		return s.w.cfg.Store.AllowProbeAfter(ctx, s.w.cfg.Engine.Credential(), 0)
	})
	if err != nil {
		s.w.log.Error("the probe of the credential could not be returned", "error", err)
	}
}

// batches returns the requests of the lease as a stack, the first on top.
func (s *session) batches() [][]delivery {
	var all []delivery
	for i := range s.lanes {
		for _, e := range s.lanes[i].Lease.Entries {
			all = append(all, delivery{e, &s.lanes[i]})
		}
	}
	if !s.isolated {
		return [][]delivery{all}
	}
	single := slices.Collect(slices.Chunk(all, 1))
	slices.Reverse(single)
	return single
}

func (s *session) send(ctx context.Context, batch []delivery) Reply {
	bodies := make([][]byte, len(batch))
	for i := range batch {
		bodies[i] = batch[i].Body
	}
	ctx, cancel := context.WithTimeout(ctx, s.w.cfg.Timeout)
	defer cancel()
	ctx, traced := s.trace(ctx, batch)
	began := time.Now()
	reply := s.w.cfg.Engine.Send(ctx, s.kind, bodies)
	reply.RetryAfter = min(reply.RetryAfter, s.w.cfg.Backoff.Max)
	traced(reply.spanError())
	failpoint.Hit(failpoint.DeliverAnswered)
	s.w.metrics.request(s.kind, reply, len(batch), time.Since(began))
	s.w.replyLog.add(s.kind, reply, len(batch))
	return reply
}

// trace starts the span of a request when one of its deliveries has a trace.
func (s *session) trace(ctx context.Context, batch []delivery) (context.Context, func(error)) {
	var traces []string
	for i := range batch {
		if batch[i].Traceparent != "" {
			traces = append(traces, batch[i].Traceparent)
		}
	}
	if len(traces) == 0 || s.w.cfg.Traced == nil {
		return ctx, func(error) {}
	}
	return s.w.cfg.Traced(ctx, s.kind, traces)
}

// guard asks the refusalGuard about a delivery that is refused alone, and tells it what was accepted.
func (s *session) guard(class replyClass, r Reply, batch []delivery) replyClass {
	g, kind, began, ended := s.w.guards[s.kind], s.kind.String(), false, false
	switch {
	case class == malformed && len(batch) == 1:
		class, began = g.refuse(batch[0].lane.Lease.ConnectionID)
	case class == accepted:
		ended = g.accept(len(batch))
	case class == perItem:
		ended = g.accept(r.acceptedItems())
	}
	if began {
		s.w.log.Error("mass refusal by the engine began: deliveries are kept, only probes are sent",
			"kind", kind, "status", r.Status)
	}
	if ended {
		s.w.log.Info("mass refusal by the engine ended", "kind", kind)
	}
	return class
}

// recordReply updates the circuit breaker and the state of the credential.
func (s *session) recordReply(ctx context.Context, class replyClass, r Reply) {
	s.updateBreaker(class, r)
	if class != unauthorized && !s.probe {
		return
	}
	store, credential := s.w.cfg.Store, s.w.cfg.Engine.Credential()
	refusal := deliveries.Refusal{Credential: credential, LeasedAt: s.lanes[0].Lease.LeasedAt, Probe: s.probe}
	s.probe = false
	change := func(ctx context.Context) error { return store.Unblock(ctx, credential) }
	switch {
	case class == unauthorized:
		s.w.refusals.Add(1)
		change = func(ctx context.Context) error { return store.Block(ctx, refusal) }
		s.w.log.Error("the engine refused its credential; delivery stops until it is changed or resumed")
	case r.Transmission != Answered || r.Status >= 500:
		change = func(ctx context.Context) error {
			return store.AllowProbeAfter(ctx, credential, s.w.cfg.LaneBackoff.Max)
		}
	}
	if err := s.w.withTimeout(context.WithoutCancel(ctx), change); err != nil {
		s.w.log.Error("the state of the credential could not be stored", "error", err)
	}
}

func (s *session) updateBreaker(class replyClass, r Reply) {
	b := s.w.breakers[s.kind]
	closed := b.State() == breaker.Closed
	switch {
	case class == malformed && s.w.guards[s.kind].active():
		// a batch of a lease from before: neither a success nor a failure
	case engineResponded(class):
		b.Success()
		if !closed {
			s.w.log.Info("circuit breaker closed", "kind", s.kind.String())
		}
	case !s.isolated || !blameable(class, r) || r.RetryAfter > 0 || !closed:
		if class == massRefused { // opens at once
			r.RetryAfter = max(r.RetryAfter, s.w.cfg.LaneBackoff.Min)
		}
		b.Failure(r.RetryAfter)
		if closed && b.State() != breaker.Closed {
			s.w.log.Warn("circuit breaker opened", "kind", s.kind.String(), "reason", reason(class, r))
		}
	}
}

// applyReply gives each delivery of a request its outcome. It reports whether the next request may be sent.
func (s *session) applyReply(class replyClass, r Reply, batch []delivery) bool {
	switch class {
	case unauthorized:
		return false
	case accepted:
		for _, e := range batch {
			e.add(deliveries.Delivered, "")
		}
		return true
	case malformed:
		batch[0].add(deliveries.DeadLettered, reason(class, r))
		return true
	case spared, massRefused:
		e := batch[0]
		e.lane.Outcomes = append(e.lane.Outcomes, deliveries.Outcome{
			Seq: e.Seq, Status: deliveries.Failed, Reason: reason(class, r), Isolate: true,
			RetryIn: max(s.w.cfg.Backoff.Delay(e.Attempts+1), r.RetryAfter),
		})
		return class == spared
	case perItem:
		return s.applyResults(r, batch)
	}
	for _, e := range batch {
		s.scheduleRetry(class, r, e, len(batch))
	}
	return false
}

func (s *session) applyResults(r Reply, batch []delivery) bool {
	goOn := true
	for i, e := range batch {
		result := Result{}
		if i < len(r.Results) {
			result = r.Results[i]
		}
		switch result.Status {
		case Created, Exists:
			e.add(deliveries.Delivered, "")
		case Rejected:
			e.add(deliveries.DeadLettered, "rejected: "+result.Reason)
		default:
			s.scheduleRetry(perItem, r, e, len(batch))
			goOn = false
		}
	}
	return goOn
}

func (e delivery) add(status deliveries.OutcomeStatus, reason string) {
	e.lane.Outcomes = append(e.lane.Outcomes, deliveries.Outcome{Seq: e.Seq, Status: status, Reason: reason})
}

// scheduleRetry lets a delivery wait. The second failure that it may have caused itself moves it to the retry
// lane, except while the breaker is not closed: then the whole engine fails, and only the probe, sent alone,
// is moved.
func (s *session) scheduleRetry(class replyClass, r Reply, e delivery, size int) {
	n := e.Attempts + 1
	closed := s.w.breakers[s.kind].State() == breaker.Closed
	o := deliveries.Outcome{
		Seq: e.Seq, Status: deliveries.Failed, Reason: reason(class, r),
		Unconfirmed: class == maybeSent || class == perItem,
		Isolate:     s.isolated || blameable(class, r) && n >= 2 && (size == 1 || closed),
	}
	if o.Isolate {
		o.RetryIn = max(s.w.cfg.Backoff.Delay(n), r.RetryAfter)
	} else {
		e.lane.Delay = max(e.lane.Delay, s.w.cfg.LaneBackoff.Delay(n), r.RetryAfter)
	}
	e.lane.Outcomes = append(e.lane.Outcomes, o)
}

func (s *session) completion() deliveries.Completion {
	return deliveries.Completion{
		Lanes: s.lanes, DeadAttempts: s.w.cfg.DeadAttempts, DeadAfter: s.w.cfg.DeadAfter,
	}
}
