package stream

import (
	"errors"
	"net"
	"time"

	"storefront.internal/shared/backoff"
	"storefront.internal/shared/breaker"
)

const (
	// slowAfter is the time without an answer after which a flush no longer counts against the common limit,
	// its leader gets new flushes only when no other leader answers, and its records are sent to another. It
	// is longer when all leaders take longer for their answers.
	slowAfter = 250 * time.Millisecond
	// lagFactor is how many times as long as another a leader has to take for its answers, and for longer
	// than slowAfter, until it gets only a probe every lagProbeEvery.
	lagFactor     = 4
	lagProbeEvery = 2 * time.Second
	// leaderFailures is how many requests in a row have to stay without an answer until records are refused
	// rather than sent to the leader, and how many fail fast until it is left out.
	leaderFailures = 3
	// maxLeaderOpen bounds the time between two probes of a leader.
	maxLeaderOpen = 2 * time.Second
	// noLeader is the id of a leader that is not known.
	noLeader = -1
)

// leader is a broker with its use by a producer. The producer's mutex guards it.
type leader struct {
	id         int
	partitions int              // that it leads
	flushes    int              // in flight
	slow       int              // of them, without an answer for slowAfter
	failures   int              // requests in a row without an answer
	breaker    *breaker.Breaker // opened by requests without an answer
	now        func() time.Time

	latency    latency
	lagging    bool      // another leader answers much sooner
	probeAt    time.Time // when it gets the next probe while it is lagging
	answeredAt time.Time // the latest answer
	newest     time.Time // when the newest of the answered requests was sent
}

func newLeader(id int, now func() time.Time) *leader {
	return &leader{id: id, now: now, breaker: breaker.New(breaker.Config{
		Failures: leaderFailures, Open: backoff.Policy{Min: breakerOpen, Max: maxLeaderOpen}, Now: now,
	})}
}

// closed reports whether the leader answered its latest requests.
func (l *leader) closed() bool { return l.breaker.State() == breaker.Closed }

// answers reports whether records may be sent to the leader as usual: it answers, and not much later than
// others.
func (l *leader) answers() bool { return l.partitions > 0 && l.closed() && !l.lagging }

// probeDue reports whether a lagging leader may get its next probe.
func (l *leader) probeDue() bool { return l.flushes == 0 && !l.now().Before(l.probeAt) }

// noteAnswer notes a request that the broker answered, though it may be with an error.
func (l *leader) noteAnswer(at time.Time) {
	l.failures = 0
	l.answeredAt = at
	l.breaker.Success()
}

// noteLatency notes how long an answer took to a request that was sent at the given time. What a probe of a
// lagging leader says replaces what was known, so that it lags no longer than it has to.
func (l *leader) noteLatency(took time.Duration, sent time.Time) {
	if l.lagging {
		l.latency = latency{}
	}
	l.latency.note(took)
	if sent.After(l.newest) {
		l.newest = sent
	}
}

// noteUnanswered notes a request that was not answered. One that timed out opens the breaker at once, since
// the next one would cost its callers as much.
func (l *leader) noteUnanswered(err error) {
	l.failures++
	open := time.Duration(0)
	if timedOut(err) {
		open = breakerOpen
	}
	l.breaker.Failure(open)
}

func timedOut(err error) bool {
	var failure net.Error
	return errors.As(err, &failure) && failure.Timeout()
}
