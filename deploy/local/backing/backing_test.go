package backing

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/segmentio/kafka-go"

	"storefront.internal/deploy/local/postgres"
	"storefront.internal/deploy/local/project"
)

func config(t *testing.T) Config {
	t.Helper()
	p, err := project.Find()
	if err != nil {
		t.Fatal(err)
	}
	// not the test's own, which PostgreSQL's user cannot enter
	dir, err := os.MkdirTemp("", "storefront-backing-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return Config{Project: p, Dir: dir, Log: func(string) io.Writer { return io.Discard }, Say: t.Logf}
}

func TestGivenAddressesWin(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	cfg.DatabaseURL, cfg.RedisAddr, cfg.KafkaBrokers, cfg.RequireReal = "postgres://db/x", "redis:1",
		"kafka:2", true
	s, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if s.DatabaseURL != cfg.DatabaseURL || s.RedisAddr != cfg.RedisAddr ||
		s.KafkaBrokers != cfg.KafkaBrokers || s.StandIns() {
		t.Errorf("set %+v", s)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestRealIsRequiredAndMissing(t *testing.T) {
	t.Setenv("PATH", "")
	cfg := config(t)
	cfg.PreferReal, cfg.RequireReal = true, true
	type opener func(context.Context, Config, *Set) (Service, error)
	for name, open := range map[string]opener{"redis-server": openRedis, "java": openKafka} {
		if _, err := open(t.Context(), cfg, &Set{}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: error %v", name, err)
		}
	}
}

// The clock of miniredis must be moved, or no claim would expire.
func TestInProcessRedisExpires(t *testing.T) {
	t.Parallel()
	s := &Set{}
	service, err := openRedis(t.Context(), config(t), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = service.close() })
	if service.Origin != StandIn {
		t.Errorf("origin %s", service.Origin)
	}
	client := redis.NewClient(&redis.Options{Addr: s.RedisAddr})
	t.Cleanup(func() { _ = client.Close() })
	if err := client.Set(t.Context(), "claim", "x", time.Second).Err(); err != nil {
		t.Fatal(err)
	}
	within(t, 20*time.Second, func() error {
		if n := client.Exists(t.Context(), "claim").Val(); n != 0 {
			return errors.New("the key is still there")
		}
		return nil
	})
}

// The stand-in for Kafka finds its data again.
func TestInProcessKafkaKeepsItsData(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	first := &Set{}
	service, err := openKafka(ctx, cfg, first)
	if err != nil {
		t.Fatal(err)
	}
	client := clientOf(first.KafkaBrokers)
	_, err = client.CreateTopics(ctx,
		&kafka.CreateTopicsRequest{
			Topics: []kafka.TopicConfig{{Topic: "kept", NumPartitions: 1, ReplicationFactor: 1}},
		})
	if err != nil {
		t.Fatal(err)
	}
	records := kafka.NewRecordReader(kafka.Record{Value: kafka.NewBytes([]byte("hello"))})
	answer, err := client.Produce(ctx, &kafka.ProduceRequest{Topic: "kept", RequiredAcks: kafka.RequireAll,
		Records: records})
	if err != nil || answer.Error != nil {
		t.Fatal(err, answer)
	}
	if err := service.close(); err != nil {
		t.Fatal(err)
	}

	second := &Set{}
	service, err = openKafka(ctx, cfg, second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = service.close() })
	offsets, err := clientOf(second.KafkaBrokers).ListOffsets(ctx, &kafka.ListOffsetsRequest{
		Topics: map[string][]kafka.OffsetRequest{"kept": {kafka.LastOffsetOf(0)}},
	})
	if err != nil || offsets.Topics["kept"][0].LastOffset != 1 {
		t.Errorf("after a restart: %+v, %v", offsets, err)
	}
}

func clientOf(brokers string) *kafka.Client {
	return &kafka.Client{Addr: kafka.TCP(brokers), Timeout: 10 * time.Second, Transport: &kafka.Transport{}}
}

// A killed server leaves a pid file; the next one starts all the same and has the data.
func TestPostgresAfterKill(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	server, _, err := startPostgres(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	server.Kill()
	again, _, err := startPostgres(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(again.URL("x"), postgres.Superuser+"@127.0.0.1") {
		t.Errorf("URL %s", again.URL("x"))
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

func within(t *testing.T, limit time.Duration, ask func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for err := ask(); err != nil; err = ask() {
		select {
		case <-ctx.Done():
			t.Fatal(fmt.Errorf("%w: %w", ctx.Err(), err))
		case <-tick.C:
		}
	}
}
