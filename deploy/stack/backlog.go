package stack

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"

	"storefront.internal/deploy/stack/poll"
)

// SkipBacklog lets a new consumer group begin after what other deployments on this broker left in the topics.
func SkipBacklog(ctx context.Context, brokers, group string) error {
	transport := &kafka.Transport{}
	defer transport.CloseIdleConnections()
	client := &kafka.Client{Addr: kafka.TCP(strings.Split(brokers, ",")...), Timeout: 10 * time.Second,
		Transport: transport}
	// A fresh broker's coordinator needs a moment, and a busy machine's broker several.
	return poll.Until(ctx, "commit the group's offsets",
		func() error { return skipBacklog(ctx, client, group) })
}

func skipBacklog(ctx context.Context, client *kafka.Client, group string) error {
	ends, err := endsOf(ctx, client)
	if err != nil || len(ends) == 0 {
		return err
	}
	return commit(ctx, client, group, ends)
}

// endsOf is the end offset of each partition of the storefront topics.
func endsOf(ctx context.Context, client *kafka.Client) (map[string][]kafka.OffsetCommit, error) {
	meta, err := client.Metadata(ctx, &kafka.MetadataRequest{})
	if err != nil {
		return nil, err
	}
	ask := map[string][]kafka.OffsetRequest{}
	for _, topic := range meta.Topics {
		if !strings.HasPrefix(topic.Name, "storefront.") {
			continue
		}
		for _, p := range topic.Partitions {
			ask[topic.Name] = append(ask[topic.Name], kafka.LastOffsetOf(p.ID))
		}
	}
	if len(ask) == 0 {
		return nil, nil
	}
	answer, err := client.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: ask})
	if err != nil {
		return nil, err
	}
	ends := map[string][]kafka.OffsetCommit{}
	for topic, partitions := range answer.Topics {
		for _, p := range partitions {
			ends[topic] = append(ends[topic],
				kafka.OffsetCommit{Partition: p.Partition, Offset: p.LastOffset})
		}
	}
	return ends, nil
}

// commit commits offsets of a group without members.
func commit(ctx context.Context, client *kafka.Client, group string,
	offsets map[string][]kafka.OffsetCommit) error {
	answer, err := client.OffsetCommit(ctx, &kafka.OffsetCommitRequest{GroupID: group, GenerationID: -1,
		Topics: offsets})
	if err != nil {
		return err
	}
	var errs []error
	for _, partitions := range answer.Topics {
		for _, p := range partitions {
			errs = append(errs, p.Error)
		}
	}
	return errors.Join(errs...)
}
