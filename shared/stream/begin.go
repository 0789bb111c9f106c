package stream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"

	"storefront.internal/shared/backoff"
)

// Beginning is what Begin of a ConsumerConfig decides.
type Beginning struct {
	AssignmentID string
	ClusterID    string // of Kafka; offsets of another cluster mean nothing
	Starts       []Start
}

// Start is where a partition begins.
type Start struct {
	Topic     string
	Partition int
	Committed int64 // the group's offset, negative when it has none
	// Marked says that a Consumer with a Begin committed it; a tool or an older release leaves no mark.
	Marked bool
	First  int64 // the first offset that the broker has
	Offset int64 // where it begins: at the group's offset, at First when there is none
}

// offsetMark is the metadata of offsets that a Consumer with a Begin commits.
const offsetMark = "stored"

func assignmentID(gen *kafka.Generation) string { return fmt.Sprintf("%s/%d", gen.MemberID, gen.ID) }

// begin asks Begin where the partitions begin. It tries the broker again until ctx ends.
func (c *Consumer) begin(ctx context.Context, client *kafka.Client, gen *kafka.Generation,
	a *Assignment) error {
	if c.cfg.Begin == nil {
		return nil
	}
	var b *Beginning
	for attempt := 1; ; attempt++ {
		var err error
		if b, err = c.beginning(ctx, client, a); err == nil {
			break
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		c.cfg.Logger.Warn("the offsets of the group cannot be read", "group", gen.GroupID, "error", err)
		policy := backoff.Policy{Min: 100 * time.Millisecond, Max: 3 * time.Second}
		if err := backoff.Sleep(ctx, policy.Delay(attempt)); err != nil {
			return err
		}
	}
	if err := c.cfg.Begin(ctx, b); err != nil {
		return err
	}
	for _, s := range b.Starts {
		a.begin(topicPartition{s.Topic, s.Partition}, s)
	}
	// Partitions without new records are marked as well, and the lag shows at once what is read again.
	if err := a.commitPositions(); err != nil {
		c.cfg.Logger.Warn("the offsets of the beginning were not committed, the next commit repeats it",
			"group", gen.GroupID, "error", err)
	}
	return nil
}

func (c *Consumer) beginning(ctx context.Context, client *kafka.Client, a *Assignment) (*Beginning, error) {
	b := &Beginning{AssignmentID: a.id}
	partitions := a.Partitions()
	if len(partitions) == 0 {
		return b, nil
	}
	meta, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: c.cfg.Topics})
	if err != nil {
		return nil, fmt.Errorf("stream: metadata: %w", err)
	}
	b.ClusterID = meta.ClusterID
	committed, err := client.OffsetFetch(ctx,
		&kafka.OffsetFetchRequest{GroupID: c.cfg.Group, Topics: partitions})
	if err == nil {
		err = committed.Error
	}
	if err != nil {
		return nil, fmt.Errorf("stream: committed offsets: %w", err)
	}
	bounds, err := listOffsets(ctx, client, partitions)
	if err != nil {
		return nil, err
	}
	for topic, parts := range committed.Topics {
		for _, p := range parts {
			o, known := bounds[topicPartition{topic, p.Partition}]
			if p.Error != nil || !known {
				return nil, errors.Join(fmt.Errorf("stream: offsets of %s/%d are unknown", topic,
					p.Partition), p.Error)
			}
			s := Start{Topic: topic, Partition: p.Partition, Committed: p.CommittedOffset,
				Marked: p.Metadata == offsetMark, First: o.first, Offset: p.CommittedOffset}
			if s.Committed < 0 {
				s.Offset = o.first
			}
			b.Starts = append(b.Starts, s)
		}
	}
	if len(b.Starts) != len(a.partitions) {
		return nil, fmt.Errorf("stream: offsets of %d partitions of %d", len(b.Starts), len(a.partitions))
	}
	return b, nil
}

// committer returns how a generation commits. kafka-go's own way cannot mark offsets.
func (c *Consumer) committer(client *kafka.Client,
	gen *kafka.Generation) func(map[string]map[int]int64) error {
	if c.cfg.Begin == nil {
		return gen.CommitOffsets
	}
	return func(offsets map[string]map[int]int64) error {
		request := &kafka.OffsetCommitRequest{GroupID: gen.GroupID, GenerationID: int(gen.ID),
			MemberID: gen.MemberID, Topics: map[string][]kafka.OffsetCommit{}}
		for topic, parts := range offsets {
			for id, offset := range parts {
				request.Topics[topic] = append(request.Topics[topic],
					kafka.OffsetCommit{Partition: id, Offset: offset, Metadata: offsetMark})
			}
		}
		res, err := client.OffsetCommit(context.Background(), request) // the client's timeout ends it
		if err != nil {
			return err
		}
		var errs []error
		for _, parts := range res.Topics {
			for _, p := range parts {
				errs = append(errs, p.Error)
			}
		}
		return errors.Join(errs...)
	}
}
