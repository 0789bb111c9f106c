package stream

import (
	"errors"
	"math"
	"slices"
	"time"

	"storefront.internal/shared/backoff"
	"storefront.internal/shared/breaker"
)

const (
	partitionsTTL   = time.Second // how long the list of a topic's partitions is used
	breakerFailures = 3           // failed flushes in a row after which a partition is left out
	breakerOpen     = time.Second // for this long; then one flush probes it
)

// partitions is the list of a topic's partitions with their use by a producer: round robin, one flush at a
// time each, and those that are likely to answer first. The producer's mutex guards it.
type partitions struct {
	now       func() time.Time
	hungAfter time.Duration
	group     Group
	limit     int // flushes in flight of all leaders together, without the slow ones
	inFlight  int // of them
	list      []*partition
	leaders   map[int]*leader // also those that led a partition once
	leading   []*leader       // those that lead a partition now
	share     int             // flushes in flight of one leader
	next      int
	fetchedAt time.Time
	failure   error   // of the latest request that was not answered
	usual     latency // of the leader that answers soonest
}

type partition struct {
	id      int
	leader  *leader
	flushes int              // in flight
	breaker *breaker.Breaker // opened by answers that are errors
}

// reservation is the place of one attempt of a flush at a partition.
type reservation struct {
	part     *partition
	leader   *leader // of the partition when the attempt began
	began    time.Time
	patience time.Duration // after which the attempt is slow
	probe    bool          // of a leader that did not answer, or too late, so it has one record
	slow     bool          // no answer for patience
	hung     bool          // no sign of life of the leader meanwhile: it no longer counts for its share
	ended    bool          // the attempt has
	moved    bool          // another attempt has the records
	timer    *time.Timer   // looks again at a slow attempt
}

// rank orders partitions by how likely a flush to them is answered soon.
type rank uint8

const (
	rankReady       rank = iota // the leader answers, or is to be probed
	rankRejecting               // the leader answers with errors
	rankSlow                    // the leader lags, or has not answered a flush in time
	rankUnanswered              // the leader did not answer the latest request
	rankUnreachable             // there is no leader, or it did not answer several requests in a row
)

func (p *partition) rank() rank {
	state := p.leader.breaker.State()
	switch {
	case p.leader.id == noLeader:
		return rankUnreachable
	case state == breaker.HalfOpen && p.leader.flushes == 0:
		return rankReady
	case state != breaker.Closed && p.leader.failures >= leaderFailures:
		return rankUnreachable
	case state != breaker.Closed:
		return rankUnanswered
	case p.leader.slow > 0, p.leader.lagging && !p.leader.probeDue():
		return rankSlow
	case p.breaker.State() == breaker.Open:
		return rankRejecting
	}
	return rankReady
}

// placement says who leads a partition; noLeader when that is unknown.
type placement struct{ partition, leader int }

// update replaces the list. Partitions and leaders that stay keep their state.
func (ps *partitions) update(placements []placement) {
	for _, l := range ps.leaders {
		l.partitions = 0
	}
	list := make([]*partition, 0, len(placements))
	ps.leading = ps.leading[:0]
	for _, at := range placements {
		p := ps.partition(at.partition)
		p.leader = ps.leader(at.leader)
		if p.leader.partitions++; p.leader.partitions == 1 {
			ps.leading = append(ps.leading, p.leader)
		}
		list = append(list, p)
	}
	ps.list, ps.fetchedAt = list, ps.now()
	ps.share = (ps.limit + len(ps.leading) - 1) / len(ps.leading)
}

func (ps *partitions) partition(id int) *partition {
	if i := slices.IndexFunc(ps.list, func(p *partition) bool { return p.id == id }); i >= 0 {
		return ps.list[i]
	}
	return &partition{id: id, breaker: breaker.New(breaker.Config{
		Failures: breakerFailures, Open: backoff.Policy{Min: breakerOpen, Max: breakerOpen}, Now: ps.now,
	})}
}

func (ps *partitions) leader(id int) *leader {
	l := ps.leaders[id]
	if l == nil {
		l = newLeader(id, ps.now)
		if ps.leaders == nil {
			ps.leaders = map[int]*leader{}
		}
		ps.leaders[id] = l
	}
	return l
}

// pick reserves a partition for a new flush, one of the best rank. It returns nil when each of them is busy,
// and ErrUnreachable when no leader is worth a try.
func (ps *partitions) pick() (*reservation, error) {
	if len(ps.list) == 0 {
		return nil, nil
	}
	best := rankUnreachable
	for i := 0; i < len(ps.list) && best != rankReady; i++ {
		best = min(best, ps.list[i].rank())
	}
	if best == rankUnreachable {
		return nil, errors.Join(ErrUnreachable, ps.failure)
	}
	preferred := func(p *partition) bool { return p.rank() == best && ps.group.has(p.id, len(ps.list)) }
	all := !slices.ContainsFunc(ps.list, preferred)
	p := ps.nextRoundRobin(func(p *partition) bool {
		return ps.free(p) && p.rank() == best && (all || preferred(p))
	})
	if p == nil {
		return nil, nil
	}
	probe := !p.leader.closed() || p.leader.lagging && best == rankReady
	at := ps.reserve(p)
	at.probe = probe
	return at, nil
}

// free reports whether the partition and its leader may have one more flush in flight.
func (ps *partitions) free(p *partition) bool { return p.flushes == 0 && p.leader.flushes < ps.share }

// elsewhere returns a partition of another leader that answers, usually within the given time, preferably a
// free one, or nil.
func (ps *partitions) elsewhere(first *reservation, within time.Duration) *partition {
	answers := func(p *partition) bool {
		return p.leader != first.leader && p.rank() == rankReady && p.leader.answers() &&
			p.leader.latency.mean <= within
	}
	if p := ps.nextRoundRobin(func(p *partition) bool { return answers(p) && ps.free(p) }); p != nil {
		return p
	}
	return ps.nextRoundRobin(answers)
}

// retryPartition returns the partition for a second attempt: of another leader, if one answers, or a
// different one, or the same when there is no other.
func (ps *partitions) retryPartition(first *reservation) *partition {
	if p := ps.elsewhere(first, math.MaxInt64); p != nil {
		return p
	}
	for _, fits := range []func(*partition) bool{
		func(p *partition) bool { return p.rank() < rankUnanswered && p.leader.closed() },
		func(p *partition) bool { return p.rank() < rankUnreachable },
		func(*partition) bool { return true },
	} {
		p := ps.nextRoundRobin(func(p *partition) bool { return p != first.part && fits(p) })
		if p != nil {
			return p
		}
	}
	return first.part
}

func (ps *partitions) nextRoundRobin(fits func(*partition) bool) *partition {
	for i := range ps.list {
		j := (ps.next + i) % len(ps.list)
		if fits(ps.list[j]) {
			ps.next = (j + 1) % len(ps.list)
			return ps.list[j]
		}
	}
	return nil
}

func (ps *partitions) reserve(p *partition) *reservation {
	ps.inFlight++
	p.flushes++
	p.leader.flushes++
	p.breaker.Acquire() // a flush on a half-open partition or leader is its probe
	p.leader.breaker.Acquire()
	now := ps.now()
	if p.leader.lagging {
		p.leader.probeAt = now.Add(lagProbeEvery)
	}
	return &reservation{part: p, leader: p.leader, began: now, patience: ps.patience()}
}

// patience is the time without an answer after which an attempt is slow.
func (ps *partitions) patience() time.Duration {
	return min(max(slowAfter, ps.usual.most()), ps.hungAfter)
}

// hungTime is the time without a sign of life after which a leader counts as hung.
func (ps *partitions) hungTime() time.Duration {
	return max(ps.hungAfter, min(ps.usual.most(), 2*ps.hungAfter))
}

// markSlow takes the attempt out of the common limit: from now on only its leader's share counts it.
func (ps *partitions) markSlow(at *reservation) {
	at.slow = true
	at.leader.slow++
	ps.inFlight--
}

// markHung notes that the leader of a slow attempt gives no sign of life. The attempt no longer counts for
// its share, so that a probe may follow.
func (ps *partitions) markHung(at *reservation) {
	ps.failure = errHung
	at.leader.noteUnanswered(errHung)
	ps.release(at)
	at.hung = true
	ps.compare()
}

// release ends a reservation.
func (ps *partitions) release(at *reservation) {
	if at.hung {
		return
	}
	if at.slow {
		at.leader.slow--
	} else {
		ps.inFlight--
	}
	at.part.flushes--
	at.leader.flushes--
}

// note notes how an attempt ended.
func (ps *partitions) note(at *reservation, r result) {
	switch {
	case errors.Is(r.err, errNothingSent), errors.Is(r.err, errStopped):
	case !r.answered:
		if !at.hung { // this is noted
			ps.failure = r.err
			at.leader.noteUnanswered(r.err)
		}
	default:
		at.leader.noteAnswer(r.ended)
		at.leader.noteLatency(r.ended.Sub(r.sent), r.sent)
		if r.err == nil || permanent(r.err) {
			at.part.breaker.Success()
		} else {
			at.part.breaker.Failure(0)
		}
	}
	ps.compare()
}

// compare finds the leader that answers soonest, and those that lag behind it.
func (ps *partitions) compare() {
	var best *leader
	for _, l := range ps.leading {
		if l.latency.known() && (best == nil || l.latency.mean < best.latency.mean) && l.closed() {
			best = l
		}
	}
	for _, l := range ps.leading {
		l.lagging = best != nil && l.latency.mean > max(slowAfter, lagFactor*best.latency.mean)
	}
	if best != nil {
		ps.usual = best.latency
	}
}

// unreachableLeaders counts the leaders that did not answer the latest requests.
func (ps *partitions) unreachableLeaders() (n int) {
	for _, l := range ps.leading {
		if l.id == noLeader || l.breaker.State() != breaker.Closed {
			n++
		}
	}
	return n
}
