package stream

import (
	"errors"
	"slices"
	"time"

	"storefront.internal/shared/backoff"
	"storefront.internal/shared/breaker"
)

const (
	partitionsTTL   = 5 * time.Second // how long the list of a topic's partitions is used
	breakerFailures = 3               // failed flushes in a row after which a partition is left out
	breakerOpen     = time.Second     // for this long; then one flush probes it
)

// partitions is the list of a topic's partitions with their use by a producer: round robin, one flush at a
// time each, and without those whose circuit breaker is open. The producer's mutex guards it.
type partitions struct {
	now       func() time.Time
	list      []partition
	next      int
	fetchedAt time.Time
}

type partition struct {
	id      int
	flushes int // in flight
	breaker *breaker.Breaker
}

func (p partition) healthy() bool { return p.breaker.State() != breaker.Open }

// update replaces the list. Partitions that stay keep their state.
func (ps *partitions) update(ids []int) {
	list := make([]partition, 0, len(ids))
	for _, id := range ids {
		if i := ps.index(id); i >= 0 {
			list = append(list, ps.list[i])
			continue
		}
		list = append(list, partition{id: id, breaker: breaker.New(breaker.Config{
			Failures: breakerFailures, Open: backoff.Policy{Min: breakerOpen, Max: breakerOpen}, Now: ps.now,
		})})
	}
	ps.list, ps.fetchedAt = list, ps.now()
}

func (ps *partitions) index(id int) int {
	return slices.IndexFunc(ps.list, func(p partition) bool { return p.id == id })
}

// pick reserves a partition for a new flush. It returns false when each usable one has a flush in flight.
// Partitions with an open breaker are used only when all are open.
func (ps *partitions) pick() (int, bool) {
	healthy := slices.ContainsFunc(ps.list, partition.healthy)
	return ps.nextRoundRobin(func(p partition) bool { return p.flushes == 0 && (!healthy || p.healthy()) })
}

// retryPartition reserves a partition for a second attempt: preferably a healthy and free one, and the same
// one only when there is no other.
func (ps *partitions) retryPartition(id int) int {
	for _, fits := range []func(partition) bool{
		func(p partition) bool { return p.id != id && p.flushes == 0 && p.healthy() },
		func(p partition) bool { return p.id != id && p.healthy() },
		func(p partition) bool { return p.id != id },
	} {
		if found, ok := ps.nextRoundRobin(fits); ok {
			return found
		}
	}
	ps.reserve(ps.index(id))
	return id
}

func (ps *partitions) nextRoundRobin(fits func(partition) bool) (int, bool) {
	for i := range ps.list {
		j := (ps.next + i) % len(ps.list)
		if fits(ps.list[j]) {
			ps.next = (j + 1) % len(ps.list)
			ps.reserve(j)
			return ps.list[j].id, true
		}
	}
	return 0, false
}

func (ps *partitions) reserve(i int) {
	if i >= 0 { // else the topic lost the partition meanwhile
		ps.list[i].flushes++
		ps.list[i].breaker.Acquire() // a flush on a half-open partition is its probe
	}
}

// release ends a reservation and notes how the flush ended.
func (ps *partitions) release(id int, err error) {
	i := ps.index(id)
	if i < 0 {
		return
	}
	p := &ps.list[i]
	p.flushes--
	switch {
	case errors.Is(err, errNothingSent):
	case err == nil || permanent(err): // the partition answers
		p.breaker.Success()
	default:
		p.breaker.Failure(0)
	}
}
