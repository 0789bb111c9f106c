package kafka

import (
	"context"
	"log/slog"
	"time"

	"storefront.internal/shared/backoff"
	"storefront.internal/shared/settings"
	"storefront.internal/shared/stream"
)

// ensureTimeout bounds one attempt to create the topics.
const ensureTimeout = 10 * time.Second

// Topics creates the named topics in the background, as a process has to start without Kafka.
type Topics struct {
	Settings settings.Kafka
	Security stream.Security
	Names    []string
	Logger   *slog.Logger
}

// Run tries until the topics exist or ctx ends.
func (t *Topics) Run(ctx context.Context) error {
	pauses := backoff.Policy{Min: 500 * time.Millisecond, Max: 30 * time.Second}
	for attempt := 1; ; attempt++ {
		err := t.ensure(ctx)
		if err == nil || ctx.Err() != nil {
			return nil
		}
		pause := pauses.Delay(attempt)
		t.Logger.Warn("Kafka topics cannot be created yet", slog.Any("error", err),
			slog.Duration("retry_in", pause))
		if backoff.Sleep(ctx, pause) != nil {
			return nil
		}
	}
}

func (t *Topics) ensure(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, ensureTimeout)
	defer cancel()
	topics := make([]stream.Topic, len(t.Names))
	for i, name := range t.Names {
		topics[i] = stream.Topic{Name: name, Partitions: t.Settings.TopicPartitions,
			ReplicationFactor: t.Settings.ReplicationFactor}
	}
	return stream.EnsureTopics(ctx, t.Settings.KafkaBrokers, t.Security, topics)
}
