package testkit

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
)

// Kafka returns the bootstrap addresses of the brokers.
func Kafka(t testing.TB) []string {
	t.Helper()
	return strings.Split(address(t, "TEST_KAFKA_BROKERS"), ",")
}

// Topic creates a topic for the test, waits until each partition has a leader, and deletes it when the test
// ends.
func Topic(t testing.TB, partitions int) string {
	t.Helper()
	brokers, topic := Kafka(t), Name("test-")
	transport := &kafka.Transport{DialTimeout: 5 * time.Second, MetadataTTL: 100 * time.Millisecond}
	client := &kafka.Client{Addr: kafka.TCP(brokers...), Timeout: 20 * time.Second, Transport: transport}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	res, err := client.CreateTopics(ctx,
		&kafka.CreateTopicsRequest{
			Topics: []kafka.TopicConfig{{Topic: topic, NumPartitions: partitions, ReplicationFactor: 1}},
		})
	if err == nil {
		err = res.Errors[topic]
	}
	if err == nil {
		err = awaitLeaders(ctx, client, topic, partitions)
	}
	if err != nil {
		t.Fatalf("testkit: topic: %v", err)
	}
	t.Cleanup(func() {
		defer transport.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		// a test may have stopped the broker
		_, _ = client.DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: []string{topic}})
	})
	return topic
}

func awaitLeaders(ctx context.Context, client *kafka.Client, topic string, partitions int) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		ready, err := countLeaders(ctx, client, topic, partitions)
		if ready == partitions {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d partitions have a leader (%w)", ready, partitions, err)
		case <-tick.C:
		}
	}
}

// countLeaders counts the partitions that answer for their offsets, which only a leader does.
func countLeaders(ctx context.Context, client *kafka.Client, topic string, partitions int) (int, error) {
	req := &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{}}
	for p := range partitions {
		req.Topics[topic] = append(req.Topics[topic], kafka.LastOffsetOf(p))
	}
	res, err := client.ListOffsets(ctx, req)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, p := range res.Topics[topic] {
		if p.Error == nil {
			n++
		}
	}
	return n, nil
}
