package stream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/segmentio/kafka-go"
)

// ErrFenced comes from Done when the group has moved on: the partitions belong to another generation, and
// records whose offsets were not committed will be read again.
var ErrFenced = errors.New("stream: generation ended")

// Assignment is the set of partitions of this member in one generation of its group. It is safe for
// concurrent use.
type Assignment struct {
	id         string
	batches    chan Batch
	partitions []topicPartition
	commit     func(map[string]map[int]int64) error

	commits sync.Mutex // one commit at a time, so that an earlier one cannot overwrite a later one
	mu      sync.Mutex
	state   map[topicPartition]*progress
}

// progress is the state of one partition.
type progress struct {
	fetched   atomic.Int64    // the next offset to fetch; negative until it is known
	blocked   atomic.Bool     // the fetcher waits for the workers
	position  int64           // all records before it are done
	ahead     map[int64]int64 // batches that are done after a gap: first offset to end
	committed int64
}

func newAssignment(gen *kafka.Generation, batchesPerPartition int,
	commit func(map[string]map[int]int64) error) *Assignment {
	a := &Assignment{id: assignmentID(gen), commit: commit, state: map[topicPartition]*progress{}}
	for topic, parts := range gen.Assignments {
		for _, p := range parts {
			at := topicPartition{topic, p.ID}
			a.partitions = append(a.partitions, at)
			a.state[at] = &progress{}
			a.seek(at, p.Offset)
		}
	}
	a.batches = make(chan Batch, batchesPerPartition*len(a.partitions))
	return a
}

// seek makes a partition continue at the offset, whatever was committed before.
func (a *Assignment) seek(at topicPartition, offset int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.state[at]
	s.fetched.Store(offset)
	s.position, s.committed, s.ahead = offset, offset, map[int64]int64{}
}

// begin makes a partition begin where Begin said. The next commit contains that, unless the group has it.
func (a *Assignment) begin(at topicPartition, s Start) {
	a.seek(at, s.Offset)
	if s.Marked && s.Committed == s.Offset {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.state[at].committed = -1
}

// Batches returns the channel of fetched batches of all partitions. Those of one partition come in order. The
// channel is closed when the generation has ended.
func (a *Assignment) Batches() <-chan Batch { return a.batches }

// Partitions returns the assigned partitions by topic.
func (a *Assignment) Partitions() map[string][]int {
	out := map[string][]int{}
	for _, at := range a.partitions {
		out[at.topic] = append(out[at.topic], at.partition)
	}
	return out
}

// ID identifies this member in this generation.
func (a *Assignment) ID() string { return a.id }

// Positions calls f with each partition and its position: all records before it are done.
func (a *Assignment) Positions(f func(topic string, partition int, position int64)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for at, s := range a.state {
		f(at.topic, at.partition, s.position)
	}
}

// Done marks batches as stored and commits. The offset of a partition moves only over batches that are done
// without a gap, so workers may finish in any order. ErrFenced means that the generation has ended; after any
// other error the next Done commits the offsets of this one too.
func (a *Assignment) Done(batches ...Batch) error {
	a.commits.Lock()
	defer a.commits.Unlock()
	a.mu.Lock()
	for _, b := range batches {
		s, ok := a.state[topicPartition{b.Topic, b.Partition}]
		if !ok {
			continue
		}
		s.ahead[b.from] = b.to
		for to, ok := s.ahead[s.position]; ok; to, ok = s.ahead[s.position] {
			delete(s.ahead, s.position)
			s.position = to
		}
	}
	a.mu.Unlock()
	return a.commitPositions()
}

func (a *Assignment) commitPositions() error {
	offsets, moved := map[string]map[int]int64{}, map[topicPartition]int64{}
	a.mu.Lock()
	for at, s := range a.state {
		if s.position > s.committed && s.position >= 0 {
			if offsets[at.topic] == nil {
				offsets[at.topic] = map[int]int64{}
			}
			offsets[at.topic][at.partition] = s.position
			moved[at] = s.position
		}
	}
	a.mu.Unlock()
	if len(moved) == 0 {
		return nil
	}
	if err := a.commit(offsets); err != nil {
		return commitError(err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for at, offset := range moved {
		a.state[at].committed = offset
	}
	return nil
}

func commitError(err error) error {
	for _, code := range []error{kafka.IllegalGeneration, kafka.UnknownMemberId, kafka.RebalanceInProgress,
		kafka.ErrGenerationEnded} {
		if errors.Is(err, code) {
			return fmt.Errorf("%w: %w", ErrFenced, err)
		}
	}
	return fmt.Errorf("stream: commit offsets: %w", err)
}

// handOver gives a batch to the workers and waits while they are behind.
func (a *Assignment) handOver(ctx context.Context, b Batch) {
	s := a.state[topicPartition{b.Topic, b.Partition}]
	s.blocked.Store(true)
	defer s.blocked.Store(false)
	select {
	case a.batches <- b:
		s.fetched.Store(b.to)
	case <-ctx.Done():
	}
}
