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
	// its leader gets new flushes only when no other leader answers, and its records are sent to another.
	slowAfter = 250 * time.Millisecond
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
}

func newLeader(id int, now func() time.Time) *leader {
	return &leader{id: id, breaker: breaker.New(breaker.Config{
		Failures: leaderFailures, Open: backoff.Policy{Min: breakerOpen, Max: maxLeaderOpen}, Now: now,
	})}
}

// closed reports whether the leader answered its latest requests.
func (l *leader) closed() bool { return l.breaker.State() == breaker.Closed }

// noteAnswer notes a request that the broker answered, though it may be with an error.
func (l *leader) noteAnswer() {
	l.failures = 0
	l.breaker.Success()
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
