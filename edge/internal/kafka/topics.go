package kafka

import (
	"context"
	"log/slog"
	"time"

	"storefront.internal/shared/settings"
	"storefront.internal/shared/stream"
)

// The times of attempts to make the topics, and of the pauses between them.
const (
	leastPause = 500 * time.Millisecond
	mostPause  = 30 * time.Second
	attempt    = 10 * time.Second // after which a failure is told
)

// Topics makes sure of the named topics in the background: a process starts without Kafka.
type Topics struct {
	Settings settings.Kafka
	Security stream.Security
	Names    []string
	Logger   *slog.Logger
}

// Run tries until the topics are there or the context ends.
func (t *Topics) Run(ctx context.Context) error {
	for pause := leastPause; ; pause = min(2*pause, mostPause) {
		err := t.ensure(ctx)
		if err == nil || ctx.Err() != nil {
			return nil
		}
		t.Logger.Warn("Kafka topics are not there yet", slog.Any("error", err), slog.Duration("again_in", pause))
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

func (t *Topics) ensure(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	topics := make([]stream.Topic, len(t.Names))
	for i, name := range t.Names {
		topics[i] = stream.Topic{Name: name, Partitions: t.Settings.TopicPartitions, ReplicationFactor: t.Settings.ReplicationFactor}
	}
	return stream.EnsureTopics(ctx, t.Settings.KafkaBrokers, t.Security, topics)
}
