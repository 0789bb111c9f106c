package stream

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/segmentio/kafka-go"
)

// Topic is what EnsureTopics makes where it is missing. Existing topics stay as they are.
type Topic struct {
	Name              string
	Partitions        int
	ReplicationFactor int           // -1 is the broker's default
	Retention         time.Duration // 7 days when zero; never by size, since unread data must not go unnoticed
}

const (
	defaultRetention = 7 * 24 * time.Hour
	ensurePause      = 500 * time.Millisecond
)

// EnsureTopics makes the topics that are missing. While the brokers cannot be reached it tries again until ctx ends.
func EnsureTopics(ctx context.Context, brokers []string, security Security, topics []Topic) error {
	transport := &kafka.Transport{DialTimeout: 2 * time.Second, MetadataTTL: time.Second, TLS: security.tls, SASL: security.sasl}
	defer transport.CloseIdleConnections()
	client := &kafka.Client{Addr: kafka.TCP(brokers...), Timeout: 10 * time.Second, Transport: transport}
	for {
		retry, err := ensureTopics(ctx, client, topics)
		if err == nil || !retry {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-time.After(ensurePause):
		}
	}
}

func ensureTopics(ctx context.Context, client *kafka.Client, topics []Topic) (retry bool, err error) {
	missing, err := missingTopics(ctx, client, topics)
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
			return errors.As(err, &code) && code.Temporary(), fmt.Errorf("stream: create topic %s: %w", name, err)
		}
	}
	return false, nil
}

// missingTopics asks first, so that a service without the right to create works where an operator made the topics.
func missingTopics(ctx context.Context, client *kafka.Client, topics []Topic) ([]kafka.TopicConfig, error) {
	res, err := client.Metadata(ctx, &kafka.MetadataRequest{})
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
	return kafka.TopicConfig{Topic: t.Name, NumPartitions: t.Partitions, ReplicationFactor: t.ReplicationFactor, ConfigEntries: entries}
}
