package stream

import (
	"slices"
	"time"
)

const (
	partitionsTTL = 5 * time.Second // how long a topic's list of partitions is used without looking again
	breakAfter    = 3               // failed flushes in a row that take a partition out of the turn
	breakFor      = time.Second     // for this long; then one flush tries it
)

// partitions is a topic's partitions as a producer uses them: in turn, one flush each at a time, leaving out for a moment those that keep failing. The producer's mutex guards it.
type partitions struct {
	list []partition
	next int
	at   time.Time // of the look-up
}

type partition struct {
	id       int
	flushes  int // in flight
	failures int // in a row
	until    time.Time
}

// update takes a new list of ids and keeps what is known of those that stay.
func (ps *partitions) update(ids []int, now time.Time) {
	list := make([]partition, 0, len(ids))
	for _, id := range ids {
		p := partition{id: id}
		if i := ps.index(id); i >= 0 {
			p = ps.list[i]
		}
		list = append(list, p)
	}
	ps.list, ps.at = list, now
}

func (ps *partitions) index(id int) int {
	return slices.IndexFunc(ps.list, func(p partition) bool { return p.id == id })
}

// pick finds the partition for a new flush and books it; false when each useful one has a flush in flight. Failing ones are used only when all fail.
func (ps *partitions) pick(now time.Time) (int, bool) {
	healthy := slices.ContainsFunc(ps.list, func(p partition) bool { return !now.Before(p.until) })
	return ps.turn(func(p partition) bool { return p.flushes == 0 && (!healthy || !now.Before(p.until)) })
}

// another finds the partition for a second attempt and books it: rather a healthy and free one, and the same one only when there is no other.
func (ps *partitions) another(id int, now time.Time) int {
	for _, fits := range []func(partition) bool{
		func(p partition) bool { return p.id != id && p.flushes == 0 && !now.Before(p.until) },
		func(p partition) bool { return p.id != id && !now.Before(p.until) },
		func(p partition) bool { return p.id != id },
	} {
		if found, ok := ps.turn(fits); ok {
			return found
		}
	}
	if i := ps.index(id); i >= 0 {
		ps.list[i].flushes++
	}
	return id
}

func (ps *partitions) turn(fits func(partition) bool) (int, bool) {
	for i := range ps.list {
		j := (ps.next + i) % len(ps.list)
		if fits(ps.list[j]) {
			ps.next = (j + 1) % len(ps.list)
			ps.list[j].flushes++
			return ps.list[j].id, true
		}
	}
	return 0, false
}

// release gives back a booking and notes how the flush went.
func (ps *partitions) release(id int, failed bool, now time.Time) {
	i := ps.index(id)
	if i < 0 {
		return // the topic lost it meanwhile
	}
	p := &ps.list[i]
	p.flushes--
	if !failed {
		p.failures, p.until = 0, time.Time{}
		return
	}
	if p.failures++; p.failures >= breakAfter {
		p.until = now.Add(breakFor)
	}
}
