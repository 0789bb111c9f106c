package systemtest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
)

// skipBacklog lets a new consumer group begin behind what other scenarios left in the shared topics.
func skipBacklog(t *testing.T, brokers, group string) {
	t.Helper()
	client := &kafka.Client{Addr: kafka.TCP(strings.Split(brokers, ",")...), Timeout: 10 * time.Second, Transport: &kafka.Transport{}}
	defer client.Transport.(*kafka.Transport).CloseIdleConnections()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	meta, err := client.Metadata(ctx, &kafka.MetadataRequest{})
	if err != nil {
		t.Fatal(err)
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
		return
	}
	ends, err := client.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: ask})
	if err != nil {
		t.Fatal(err)
	}
	commits := map[string][]kafka.OffsetCommit{}
	for topic, partitions := range ends.Topics {
		for _, p := range partitions {
			commits[topic] = append(commits[topic], kafka.OffsetCommit{Partition: p.Partition, Offset: p.LastOffset})
		}
	}
	commitOffsets(ctx, t, client, group, commits)
}

// commitOffsets writes offsets of a group without members; a fresh broker's coordinator needs a moment.
func commitOffsets(ctx context.Context, t *testing.T, client *kafka.Client, group string, commits map[string][]kafka.OffsetCommit) {
	t.Helper()
	eventually(t, 20*time.Second, "commit the group's offsets", func() error {
		answer, err := client.OffsetCommit(ctx, &kafka.OffsetCommitRequest{GroupID: group, GenerationID: -1, Topics: commits})
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
	})
}
