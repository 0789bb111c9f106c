package deliver

import (
	"context"
	"math/rand/v2"
	"time"

	"storefront.internal/shared/crashpoint"
	"storefront.internal/shared/deliveries"
)

// session is one lease being sent.
type session struct {
	w        *Worker
	lease    *deliveries.Lease
	ends     time.Time
	seen     int64 // the worker's refusals before the lease was asked for
	probe    bool  // the credential is on trial
	outcomes []deliveries.Outcome
	rest     time.Duration
}

// run sends the lease's deliveries until all have a fate, or one fails, or the lease is too short for another
// request. What has no fate then goes back as it was.
func (s *session) run(ctx context.Context) {
	s.probe = s.lease.Probe
	send, cancel := s.sendContext(ctx)
	defer cancel()
	defer s.handBack(ctx)
	todo := s.requests()
	for len(todo) > 0 {
		if ctx.Err() != nil || s.revoked() || time.Until(s.ends) < s.w.cfg.Timeout+leaseMargin {
			return
		}
		batch := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		reply := s.send(send, batch)
		v := judge(s.lease.Kind, reply)
		s.note(ctx, v, reply)
		if v == malformed && len(batch) > 1 {
			half := len(batch) / 2
			todo = append(todo, batch[half:], batch[:half])
			continue
		}
		if !s.decide(v, reply, batch) {
			return
		}
	}
}

// revoked reports whether the credential was refused since the lease was asked for. The probe does not mind: the late
// answer to a request from before must not keep it from being sent.
func (s *session) revoked() bool { return !s.probe && s.w.refusals.Load() != s.seen }

// handBack allows another probe at once when this lease was to send it and did not. Else the operator's resume would rest
// until the lease, which nobody holds any more, would have ended.
func (s *session) handBack(ctx context.Context) {
	if !s.probe {
		return
	}
	err := s.w.withTimeout(context.WithoutCancel(ctx), func(ctx context.Context) error {
		return s.w.cfg.Store.Reprobe(ctx, s.w.cfg.Engine.Credential(), 0)
	})
	if err != nil {
		s.w.log.Error("the credential's probe could not be handed back", "error", err)
	}
}

// sendContext outlives the stop by the grace, so that a request under way may still be answered.
func (s *session) sendContext(ctx context.Context) (context.Context, context.CancelFunc) {
	send, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		sleep(send, s.w.cfg.StopGrace, nil)
		cancel()
	})
	return send, func() { stop(); cancel() }
}

// requests is the lease as a stack of batches, the first on top.
func (s *session) requests() [][]deliveries.Leased {
	e := s.lease.Entries
	if !s.lease.Alone {
		return [][]deliveries.Leased{e}
	}
	todo := make([][]deliveries.Leased, 0, len(e))
	for i := len(e) - 1; i >= 0; i-- {
		todo = append(todo, e[i:i+1])
	}
	return todo
}

func (s *session) send(ctx context.Context, batch []deliveries.Leased) Reply {
	bodies := make([][]byte, len(batch))
	for i := range batch {
		bodies[i] = batch[i].Body
	}
	ctx, cancel := context.WithTimeout(ctx, s.w.cfg.Timeout)
	defer cancel()
	ctx, traced := s.trace(ctx, batch)
	began := time.Now()
	reply := s.w.cfg.Engine.Send(ctx, s.lease.Kind, bodies)
	traced(reply.failure())
	crashpoint.Hit(crashpoint.DeliverAnswered)
	s.w.metrics.request(s.lease.Kind, reply, len(batch), time.Since(began))
	return reply
}

// trace begins the request's span, where one of its deliveries came with a trace.
func (s *session) trace(ctx context.Context, batch []deliveries.Leased) (context.Context, func(error)) {
	var traces []string
	for i := range batch {
		if batch[i].Traceparent != "" {
			traces = append(traces, batch[i].Traceparent)
		}
	}
	if len(traces) == 0 || s.w.cfg.Traced == nil {
		return ctx, func(error) {}
	}
	return s.w.cfg.Traced(ctx, s.lease.Kind, traces)
}

// note tells the breaker and the credential's block of a reply.
func (s *session) note(ctx context.Context, v verdict, r Reply) {
	b := s.w.breakers[s.lease.Kind]
	switch {
	case alive(v):
		b.success()
	case !s.lease.Alone || !isolates(v, r) || r.RetryAfter > 0 || !b.closed():
		b.failure(time.Now(), min(r.RetryAfter, s.w.cfg.Backoff.Max))
	}
	if v != refused && !s.probe {
		return
	}
	credential := s.w.cfg.Engine.Credential()
	refusal := deliveries.Refusal{Credential: credential, TakenAt: s.lease.TakenAt, Probe: s.probe}
	s.probe = false
	change := func(ctx context.Context) error { return s.w.cfg.Store.Unblock(ctx, credential) }
	switch {
	case v == refused:
		s.w.refusals.Add(1)
		change = func(ctx context.Context) error { return s.w.cfg.Store.Block(ctx, refusal) }
		s.w.log.Error("the engine refused its credential; delivery stops until it is changed or resumed")
	case r.Sent != Answered || r.Status >= 500:
		change = func(ctx context.Context) error {
			return s.w.cfg.Store.Reprobe(ctx, credential, s.w.cfg.LaneBackoff.Max)
		}
	}
	if err := s.w.withTimeout(context.WithoutCancel(ctx), change); err != nil {
		s.w.log.Error("the credential's state could not be written", "error", err)
	}
}

// decide gives each delivery of a request its fate. It reports whether the next request may go.
func (s *session) decide(v verdict, r Reply, batch []deliveries.Leased) bool {
	switch v {
	case refused:
		return false
	case accepted:
		for _, e := range batch {
			s.outcomes = append(s.outcomes, deliveries.Outcome{Seq: e.Seq, Fate: deliveries.Delivered})
		}
		return true
	case malformed:
		s.outcomes = append(s.outcomes, deliveries.Outcome{Seq: batch[0].Seq, Fate: deliveries.Died, Reason: reason(v, r)})
		return true
	case each:
		return s.decideEach(r, batch)
	}
	for _, e := range batch {
		s.fail(v, r, e, len(batch))
	}
	return false
}

func (s *session) decideEach(r Reply, batch []deliveries.Leased) bool {
	goOn := true
	for i, e := range batch {
		result := Result{}
		if i < len(r.Results) {
			result = r.Results[i]
		}
		switch result.Status {
		case Created, Exists:
			s.outcomes = append(s.outcomes, deliveries.Outcome{Seq: e.Seq, Fate: deliveries.Delivered})
		case Rejected:
			s.outcomes = append(s.outcomes, deliveries.Outcome{Seq: e.Seq, Fate: deliveries.Died, Reason: "rejected: " + result.Reason})
		default:
			s.fail(each, r, e, len(batch))
			goOn = false
		}
	}
	return goOn
}

// fail lets a delivery wait. With the second failure that may be its own doing it goes aside, unless the whole engine
// is failing: an outage sends nobody aside but the one that probes.
func (s *session) fail(v verdict, r Reply, e deliveries.Leased, size int) {
	n := e.Attempts + 1
	o := deliveries.Outcome{
		Seq: e.Seq, Fate: deliveries.Failed, Reason: reason(v, r),
		Unconfirmed: v == doubtful || v == each,
		Aside:       s.lease.Alone || isolates(v, r) && n >= 2 && (size == 1 || s.w.breakers[s.lease.Kind].closed()),
	}
	word := min(r.RetryAfter, s.w.cfg.Backoff.Max)
	if o.Aside {
		o.RetryIn = max(s.w.cfg.Backoff.After(n, rand.Float64()), word)
	} else {
		s.rest = max(s.rest, s.w.cfg.LaneBackoff.After(n, rand.Float64()), word)
	}
	s.outcomes = append(s.outcomes, o)
}

func (s *session) settlement() deliveries.Settlement {
	return deliveries.Settlement{
		Outcomes: s.outcomes, Rest: s.rest,
		DeadAttempts: s.w.cfg.DeadAttempts, DeadAfter: s.w.cfg.DeadAfter,
	}
}
