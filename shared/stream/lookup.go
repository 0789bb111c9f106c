package stream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"

	"storefront.internal/shared/backoff"
)

// lookupPause is the time between two look-ups of the partitions while none has succeeded.
const lookupPause = 100 * time.Millisecond

// refreshPartitions looks up the topic's partitions. As long as none is known, it looks again, and after
// HungAfter it refuses the queue: that leaves a caller who waits for 4 s the time of one attempt.
func (p *Producer) refreshPartitions() {
	for !p.refreshOnce() {
		time.Sleep(lookupPause)
	}
}

// refreshOnce reports whether it was the last look-up for now.
func (p *Producer) refreshOnce() bool {
	placements, err := p.lookUp(context.Background())
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err == nil:
		p.parts.update(placements)
	case len(p.parts.list) > 0:
		p.parts.fetchedAt = p.cfg.Now()
	default:
		if p.queue.first != nil && p.cfg.Now().Sub(p.lookupBegan) < p.cfg.HungAfter {
			return false
		}
		p.refuseQueue(err)
	}
	p.refreshing = false
	p.dispatch()
	return true
}

// lookUp asks for the partitions and their leaders. The transport answers from its copy of the metadata,
// which it renews every second.
func (p *Producer) lookUp(ctx context.Context) ([]placement, error) {
	p.mu.Lock()
	if p.lookupBegan.IsZero() {
		p.lookupBegan = p.cfg.Now()
	}
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, min(p.cfg.HungAfter, p.cfg.AttemptTimeout))
	defer cancel()
	res, err := p.client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{p.cfg.Topic}})
	if err != nil {
		return nil, fmt.Errorf("stream: partitions of %s: %w", p.cfg.Topic, err)
	}
	err = kafka.UnknownTopicOrPartition
	for _, t := range res.Topics {
		if t.Name != p.cfg.Topic || t.Error != nil {
			continue
		}
		placements := placementsOf(t.Partitions)
		for _, at := range placements {
			if at.leader != noLeader {
				return placements, nil
			}
		}
		if len(placements) > 0 {
			err = kafka.LeaderNotAvailable
		}
	}
	return nil, fmt.Errorf("stream: partitions of %s: %w", p.cfg.Topic, err)
}

func placementsOf(parts []kafka.Partition) []placement {
	placements := make([]placement, 0, len(parts))
	for _, part := range parts {
		at := placement{partition: part.ID, leader: noLeader}
		if part.Leader.Host != "" { // the library gives an empty Broker for a leader that it does not know
			at.leader = part.Leader.ID
		}
		placements = append(placements, at)
	}
	return placements
}

// Warm looks up the partitions and connects to their leaders, so that the first records do not wait for
// either. It tries until ctx ends. A leader that does not answer is left out at first.
func (p *Producer) Warm(ctx context.Context) error {
	for {
		placements, err := p.lookUp(ctx)
		if err == nil {
			return p.connect(ctx, placements)
		}
		if backoff.Sleep(ctx, lookupPause) != nil {
			return errors.Join(context.Cause(ctx), err)
		}
	}
}

// connect asks each leader for an offset of one of its partitions.
func (p *Producer) connect(ctx context.Context, placements []placement) error {
	p.mu.Lock()
	p.parts.update(placements)
	p.mu.Unlock()
	var all sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	asked := map[int]bool{noLeader: true}
	for _, at := range placements {
		if asked[at.leader] {
			continue
		}
		asked[at.leader] = true
		all.Go(func() {
			err := p.ask(ctx, at)
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, err)
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// ask makes one request to a leader.
func (p *Producer) ask(ctx context.Context, at placement) error {
	limited, cancel := context.WithTimeout(ctx, p.cfg.AttemptTimeout)
	defer cancel()
	begun := p.cfg.Now()
	_, err := p.client.ListOffsets(limited, &kafka.ListOffsetsRequest{
		Topics: map[string][]kafka.OffsetRequest{p.cfg.Topic: {kafka.LastOffsetOf(at.partition)}},
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.parts.leader(at.leader)
	switch {
	case err == nil:
		l.noteAnswer(p.cfg.Now())
	case ctx.Err() == nil || p.cfg.Now().Sub(begun) >= p.cfg.HungAfter:
		l.noteUnanswered(err)
	}
	p.parts.compare()
	if err != nil {
		return fmt.Errorf("stream: broker %d: %w", at.leader, err)
	}
	return nil
}
