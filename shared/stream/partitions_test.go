package stream

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
)

// newPartitions returns partitions that are led by the given brokers, and a clock that the test sets.
func newPartitions(leaders ...int) (*partitions, *time.Time) {
	now := time.Unix(1000, 0)
	ps := &partitions{now: func() time.Time { return now }, limit: 4,
		hungAfter: 2 * time.Second}
	ps.update(led(leaders...))
	return ps, &now
}

func led(leaders ...int) (all []placement) {
	for i, leader := range leaders {
		all = append(all, placement{partition: i, leader: leader})
	}
	return all
}

// must picks a partition.
func (ps *partitions) must(t *testing.T) *reservation {
	t.Helper()
	at, err := ps.pick()
	if err != nil || at == nil {
		t.Fatal("none is free: ", err)
	}
	return at
}

// end notes the end of an attempt.
func (ps *partitions) end(at *reservation, r result) {
	r.sent, r.ended = at.began, ps.now()
	ps.note(at, r)
	ps.release(at)
}

// unanswered is a request that the broker did not answer.
func unanswered(err error) result { return result{err: err} }

// answer is a request that it did.
func answer(err error) result { return result{err: err, answered: true} }

var errReset = errors.New("connection reset")

func TestPartitionsTakeTurns(t *testing.T) {
	t.Parallel()
	ps, _ := newPartitions(1, 1, 1)
	var order []int
	for range 6 {
		at := ps.must(t)
		order = append(order, at.part.id)
		ps.end(at, answer(nil))
	}
	if !slices.Equal(order, []int{0, 1, 2, 0, 1, 2}) {
		t.Errorf("order %v", order)
	}
	if ps.inFlight != 0 || ps.leaders[1].flushes != 0 {
		t.Errorf("%d in flight, %d of the leader", ps.inFlight, ps.leaders[1].flushes)
	}
}

// TestRejectingPartition: a partition whose leader answers with errors is left out while others take records,
// and used when there is no other.
func TestRejectingPartition(t *testing.T) {
	t.Parallel()
	ps, now := newPartitions(1, 1)
	bad := ps.list[0]
	for range breakerFailures {
		ps.end(ps.reserve(bad), answer(kafka.NotEnoughReplicas))
		ps.end(ps.reserve(bad), answer(errNothingSent)) // says nothing
	}
	for range 4 {
		at := ps.must(t)
		if ps.end(at, answer(nil)); at.part == bad {
			t.Error("a rejecting partition is used while another is not")
		}
	}
	for range breakerFailures {
		ps.end(ps.reserve(ps.list[1]), answer(kafka.NotEnoughReplicas))
	}
	ps.end(ps.must(t), answer(kafka.NotEnoughReplicas))
	*now = now.Add(breakerOpen)
	ps.end(ps.reserve(bad), answer(kafka.MessageSizeTooLarge)) // the partition takes records
	if bad.rank() != rankReady {
		t.Errorf("rank %d although the probe was answered", bad.rank())
	}
}

// TestShareOfALeader: the flushes in flight of one leader are bounded, the slow ones too, and a slow one
// makes room for others.
func TestShareOfALeader(t *testing.T) {
	t.Parallel()
	ps, _ := newPartitions(1, 1, 1, 2, 2, 2, 3, 3, 3)
	if ps.share != 2 {
		t.Fatalf("share %d of %d", ps.share, ps.limit)
	}
	hung := []*reservation{ps.must(t), ps.must(t)}
	for ps.inFlight < ps.limit {
		if at := ps.must(t); at.leader.id == 1 {
			t.Error("the leader gets more than its share")
		}
	}
	ps.markSlow(hung[0])
	if ps.inFlight != ps.limit-1 || ps.leaders[1].slow != 1 {
		t.Errorf("%d in flight, %d slow", ps.inFlight, ps.leaders[1].slow)
	}
	ps.end(hung[1], answer(nil))
	for at, _ := ps.pick(); at != nil; at, _ = ps.pick() {
		if at.leader.id == 1 {
			t.Error("a leader with a slow flush is used while others answer")
		}
	}
	for _, l := range ps.leaders {
		l.slow = max(l.slow, 1)
	}
	ps.must(t) // as good as any
}

// TestUnansweredLeader: a timeout leaves the leader out at once, and several resets do. When all leaders are
// left out, they are used until each has failed several times.
func TestUnansweredLeader(t *testing.T) {
	t.Parallel()
	timeout := unanswered(context.DeadlineExceeded)
	ps, now := newPartitions(1, 2)
	first, second := ps.list[0], ps.list[1]
	ps.end(ps.reserve(first), timeout)
	for range 2 {
		ps.end(ps.reserve(second), unanswered(errReset))
	}
	if first.rank() != rankUnanswered || second.rank() != rankReady || ps.unreachableLeaders() != 1 {
		t.Errorf("ranks %d %d", first.rank(), second.rank())
	}
	ps.end(ps.reserve(second), unanswered(errReset))
	if second.rank() != rankUnreachable {
		t.Errorf("rank %d after three resets", second.rank())
	}
	at := ps.must(t)
	if at.part != first {
		t.Error("not the leader with one failure")
	}
	ps.end(at, timeout)
	ps.end(ps.reserve(first), timeout)
	if _, err := ps.pick(); !errors.Is(err, ErrUnreachable) || !errors.Is(err, timeout.err) {
		t.Errorf("no leader answers: %v", err)
	}
	*now = now.Add(breakerOpen)
	for range 2 {
		if at := ps.must(t); at.leader.flushes != 1 {
			t.Error("a second probe")
		}
	}
	if _, err := ps.pick(); !errors.Is(err, ErrUnreachable) {
		t.Errorf("while both are probed: %v", err)
	}
	ps.end(&reservation{part: first, leader: first.leader, began: *now}, answer(kafka.NotLeaderForPartition))
	if at := ps.must(t); at.part != first {
		t.Error("a leader that answered is not used")
	}
}

// TestRetryPartition: a second attempt goes to another leader that answers, also to a busy one, before it
// goes to another partition of the same leader.
func TestRetryPartition(t *testing.T) {
	t.Parallel()
	ps, _ := newPartitions(1, 1, 2, 3)
	failed := ps.reserve(ps.list[0])
	ps.end(ps.reserve(ps.list[2]), unanswered(context.DeadlineExceeded))
	if p := ps.retryPartition(failed); ps.reserve(p).leader.id != 3 {
		t.Errorf("leader %d, which is not the only one that answers", p.leader.id)
	}
	if p := ps.retryPartition(failed); p.leader.id != 3 {
		t.Errorf("leader %d in place of a busy one", p.leader.id)
	}
	ps.end(ps.reserve(ps.list[3]), unanswered(context.DeadlineExceeded))
	if p := ps.retryPartition(failed); p != ps.list[1] {
		t.Errorf("partition %d, although its leader did not answer", p.id)
	}
	ps.update(led(1))
	if p := ps.retryPartition(failed); p != ps.list[0] {
		t.Error("not the only one")
	}
}

// TestUpdateKeepsState: partitions and leaders keep their state, also leaders that come back.
func TestUpdateKeepsState(t *testing.T) {
	t.Parallel()
	ps, _ := newPartitions(1, 2)
	at := ps.reserve(ps.list[0])
	ps.end(ps.reserve(ps.list[0]), unanswered(context.DeadlineExceeded))
	ps.update(led(2, 2))
	if ps.share != ps.limit || ps.unreachableLeaders() != 0 || ps.list[0].flushes != 1 {
		t.Errorf("share %d, %d unreachable, %d flushes", ps.share, ps.unreachableLeaders(),
			ps.list[0].flushes)
	}
	ps.update(led(1, noLeader))
	ps.release(at)
	if ps.list[0].rank() != rankUnanswered || ps.list[1].rank() != rankUnreachable ||
		ps.unreachableLeaders() != 2 || ps.leaders[1].flushes != 0 {
		t.Errorf("ranks %d %d, %d unreachable", ps.list[0].rank(), ps.list[1].rank(),
			ps.unreachableLeaders())
	}
}

// A producer of a group keeps to its partitions while one of them is as good as any other, even if it has to
// wait, and writes to the others while the leader of its own does not answer.
func TestGroupIsPreferred(t *testing.T) {
	t.Parallel()
	ps, _ := newPartitions(1, 2, 1, 2)
	ps.group = Group{Index: 1, Of: 4}
	for range 3 {
		at := ps.must(t)
		if at.part.id != 1 {
			t.Fatalf("partition %d", at.part.id)
		}
		if other, err := ps.pick(); other != nil || err != nil {
			t.Fatalf("beside it partition %+v, %v", other, err)
		}
		ps.end(at, answer(nil))
	}
	at := ps.must(t)
	ps.end(at, unanswered(context.DeadlineExceeded))
	if at = ps.must(t); at.leader.id != 1 {
		t.Errorf("partition %d, whose leader does not answer", at.part.id)
	}
	ps.end(at, answer(nil))
}

// Every partition is in exactly one group, or every group has exactly one partition.
func TestGroupsShareThePartitions(t *testing.T) {
	t.Parallel()
	for _, partitions := range []int{1, 2, 3, 12, 64, 100} {
		for _, groups := range []int{1, 3, 12, 64} {
			total := 0
			for g := range groups {
				own := 0
				for p := range partitions {
					if (Group{Index: g, Of: groups}).has(p, partitions) {
						own++
					}
				}
				if own == 0 || partitions < groups && own != 1 {
					t.Errorf("group %d of %d has %d of %d partitions", g, groups, own, partitions)
				}
				total += own
			}
			if total != max(partitions, groups) {
				t.Errorf("%d groups have %d partitions of %d", groups, total, partitions)
			}
		}
	}
}
