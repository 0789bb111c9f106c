package stream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/segmentio/kafka-go"
)

// ErrFenced comes from Done and Commit when the group has moved on: the partitions belong to another generation, and what was not committed will be read again.
var ErrFenced = errors.New("stream: generation ended")

// Assignment is this member's part in one generation of its group. It is safe for use by several workers.
type Assignment struct {
	batches chan Batch
	places  []place
	commit  func(map[string]map[int]int64) error

	commits sync.Mutex // one commit at a time, so that a later one is not overtaken by an earlier one
	mu      sync.Mutex
	state   map[place]*progress
}

// progress is how far one partition came.
type progress struct {
	fetched   atomic.Int64 // where the fetcher goes on; negative before it knows
	blocked   atomic.Bool  // the fetcher waits for the workers
	position  int64        // everything before it is done
	ahead     map[int64]int64
	committed int64
}

func newAssignment(gen *kafka.Generation, batchesPerPartition int) *Assignment {
	a := &Assignment{commit: gen.CommitOffsets, state: map[place]*progress{}}
	for topic, parts := range gen.Assignments {
		for _, p := range parts {
			at := place{topic, p.ID}
			a.places = append(a.places, at)
			a.state[at] = &progress{}
			a.moveTo(at, p.Offset)
		}
	}
	a.batches = make(chan Batch, batchesPerPartition*len(a.places))
	return a
}

// moveTo sets where a partition is read from; what was committed before does not bind any more.
func (a *Assignment) moveTo(at place, offset int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.state[at]
	s.fetched.Store(offset)
	s.position, s.committed, s.ahead = offset, offset, map[int64]int64{}
}

// Batches gives the fetched batches of all partitions; those of one partition come in order. It is closed when the generation has ended.
func (a *Assignment) Batches() <-chan Batch { return a.batches }

// Partitions tells what is assigned, by topic.
func (a *Assignment) Partitions() map[string][]int {
	out := map[string][]int{}
	for _, at := range a.places {
		out[at.topic] = append(out[at.topic], at.partition)
	}
	return out
}

// Done marks batches as stored and commits. A partition's offset moves only over batches that are done without a gap, so workers may finish in any order. ErrFenced means that the generation
// is over; after another error, the next Done commits this one's offsets, too.
func (a *Assignment) Done(batches ...Batch) error {
	a.commits.Lock()
	defer a.commits.Unlock()
	a.mu.Lock()
	for _, b := range batches {
		s, ok := a.state[place{b.Topic, b.Partition}]
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

// Commit is Done for a single worker that counts by itself: the offset per topic and partition is the next one to read. It never moves an offset back.
func (a *Assignment) Commit(offsets map[string]map[int]int64) error {
	a.commits.Lock()
	defer a.commits.Unlock()
	a.mu.Lock()
	for topic, parts := range offsets {
		for part, offset := range parts {
			if s, ok := a.state[place{topic, part}]; ok {
				s.position = max(s.position, offset)
			}
		}
	}
	a.mu.Unlock()
	return a.commitPositions()
}

func (a *Assignment) commitPositions() error {
	offsets, moved := map[string]map[int]int64{}, map[place]int64{}
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
	for _, code := range []error{kafka.IllegalGeneration, kafka.UnknownMemberId, kafka.RebalanceInProgress, kafka.ErrGenerationEnded} {
		if errors.Is(err, code) {
			return fmt.Errorf("%w: %w", ErrFenced, err)
		}
	}
	return fmt.Errorf("stream: commit offsets: %w", err)
}

// deliver hands a batch to the workers, and waits while they are behind.
func (a *Assignment) deliver(ctx context.Context, b Batch) {
	s := a.state[place{b.Topic, b.Partition}]
	s.blocked.Store(true)
	defer s.blocked.Store(false)
	select {
	case a.batches <- b:
		s.fetched.Store(b.to)
	case <-ctx.Done():
	}
}
