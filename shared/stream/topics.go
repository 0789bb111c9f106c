package stream

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/segmentio/kafka-go"

	"storefront.internal/shared/backoff"
)

// Topic describes a topic that EnsureTopics creates when it is missing. Existing topics are not changed.
type Topic struct {
	Name              string
	Partitions        int
	ReplicationFactor int // -1 takes the broker's default
	// 7 days when zero; size is unlimited, since unread records must not be deleted by volume
	Retention time.Duration
}

const (
	defaultRetention = 7 * 24 * time.Hour
	ensurePause      = 500 * time.Millisecond
)

// EnsureTopics creates the topics that are missing. While no broker answers it repeats until ctx ends.
func EnsureTopics(ctx context.Context, brokers []string, security Security, topics []Topic) error {
	names := make([]string, len(topics))
	for i, t := range topics {
		names[i] = t.Name
	}
	client, closeClient := newClient(brokers, security, "", names...)
	defer closeClient()
	for {
		retry, err := ensureTopics(ctx, client, topics, names)
		if err == nil || !retry {
			return err
		}
		if backoff.Sleep(ctx, ensurePause) != nil {
			return errors.Join(context.Cause(ctx), err)
		}
	}
}

func ensureTopics(ctx context.Context, client *kafka.Client, topics []Topic, names []string) (
	retry bool, err error) {
	missing, err := missingTopics(ctx, client, topics, names)
	if err != nil || len(missing) == 0 {
		return true, err
	}
	res, err := client.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: missing})
	if err != nil {
		return true, fmt.Errorf("stream: create topics: %w", err)
	}
	for name, err := range res.Errors {
		var code kafka.Error
		if err != nil && !errors.Is(err, kafka.TopicAlreadyExists) {
			return errors.As(err, &code) && code.Temporary(),
				fmt.Errorf("stream: create topic %s: %w", name, err)
		}
	}
	return false, nil
}

// missingTopics looks before anything is created, so that a service without the right to create topics works
// where an operator created them.
func missingTopics(ctx context.Context, client *kafka.Client, topics []Topic, names []string) (
	[]kafka.TopicConfig, error) {
	res, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: names})
	if err != nil {
		return nil, fmt.Errorf("stream: look up topics: %w", err)
	}
	there := map[string]bool{}
	for _, t := range res.Topics {
		there[t.Name] = len(t.Partitions) > 0
	}
	var missing []kafka.TopicConfig
	for _, t := range topics {
		if !there[t.Name] {
			missing = append(missing, t.config())
		}
	}
	return missing, nil
}

func (t Topic) config() kafka.TopicConfig {
	if t.Retention <= 0 {
		t.Retention = defaultRetention
	}
	entries := []kafka.ConfigEntry{
		{ConfigName: "retention.ms", ConfigValue: strconv.FormatInt(t.Retention.Milliseconds(), 10)},
		{ConfigName: "retention.bytes", ConfigValue: "-1"},
		{ConfigName: "unclean.leader.election.enable", ConfigValue: "false"},
	}
	if t.ReplicationFactor >= 3 {
		entries = append(entries, kafka.ConfigEntry{ConfigName: "min.insync.replicas", ConfigValue: "2"})
	}
	return kafka.TopicConfig{Topic: t.Name, NumPartitions: t.Partitions,
		ReplicationFactor: t.ReplicationFactor, ConfigEntries: entries}
}
