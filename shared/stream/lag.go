package stream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/segmentio/kafka-go"

	"storefront.internal/shared/service"
)

// LagConfig configures a Lag. Zero values take the defaults named.
type LagConfig struct {
	Brokers    []string
	Security   Security
	Group      string
	Topics     []string
	ClientID   string
	Every      time.Duration // 10 s
	Registerer prometheus.Registerer
	Logger     *slog.Logger
	Now        func() time.Time
}

// Lag measures the lag of a consumer group from the broker's committed offsets and ends. It is independent of
// the consumer of this process, so it also shows a stuck consumer and partitions without one. Each member
// measures the whole group; queries take the maximum.
type Lag struct {
	cfg LagConfig

	records *prometheus.GaugeVec
	oldest  *prometheus.GaugeVec // has no labels; a vector can be reset to be absent
	up      prometheus.Gauge
}

// NewLag registers the metrics; Run sets them.
func NewLag(cfg LagConfig) *Lag {
	cfg.Every = cmp.Or(cfg.Every, 10*time.Second)
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Lag{cfg: cfg,
		records: register(cfg.Registerer, prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "storefront_relay_consumer_lag_records",
			Help: "Records between the committed offset of the group and the end of the partition. Each " +
				"relay reports all partitions: take the maximum.",
		}, []string{"topic", "partition"})),
		oldest: register(cfg.Registerer, prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "storefront_relay_oldest_unread_seconds",
			Help: "Age of the oldest record, over all partitions, whose offset is not committed; 0 when " +
				"there is none. Alert at 24 h.",
		}, nil)),
		up: register(cfg.Registerer, prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "storefront_relay_lag_up",
			Help: "1 while the lag can be measured. At 0 the other lag metrics are absent.",
		})),
	}
}

// Run measures until ctx ends.
func (l *Lag) Run(ctx context.Context) error {
	client, closeClient := newClient(l.cfg.Brokers, l.cfg.Security, l.cfg.ClientID, l.cfg.Topics...)
	defer closeClient()
	client.Timeout = 5 * time.Second
	defer l.unknown()
	service.Every(ctx, l.cfg.Every, func(ctx context.Context) {
		if err := l.measure(ctx, client); err != nil && ctx.Err() == nil {
			l.unknown()
			l.cfg.Logger.Warn("the consumer lag cannot be measured", "group", l.cfg.Group, "error", err)
		}
	})
	return nil
}

// unknown leaves the lag metrics out, so that no outdated value is shown.
func (l *Lag) unknown() {
	l.up.Set(0)
	l.records.Reset()
	l.oldest.Reset()
}

func (l *Lag) measure(ctx context.Context, client *kafka.Client) error {
	unread, err := l.unread(ctx, client)
	if err != nil {
		return err
	}
	now := l.cfg.Now()
	var oldest time.Duration
	for at, o := range unread {
		if o.last > o.first {
			f := &fetcher{client: client, topic: at.topic, partition: at.partition, next: o.first,
				maxBytes: 1}
			if batch, err := f.fetch(ctx); err == nil && len(batch.Records) > 0 {
				oldest = max(oldest, now.Sub(batch.Records[0].Time))
			}
		}
		l.records.WithLabelValues(at.topic, strconv.Itoa(at.partition)).Set(float64(max(o.last-o.first, 0)))
	}
	l.oldest.WithLabelValues().Set(oldest.Seconds())
	l.up.Set(1)
	return nil
}

// unread returns the bounds of the uncommitted part of each partition. A partition without a committed offset
// is unread from its first available offset on.
func (l *Lag) unread(ctx context.Context, client *kafka.Client) (map[topicPartition]offsetBounds, error) {
	meta, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: l.cfg.Topics})
	if err != nil {
		return nil, fmt.Errorf("stream: metadata: %w", err)
	}
	partitions := map[string][]int{}
	for _, t := range meta.Topics {
		for _, p := range t.Partitions {
			partitions[t.Name] = append(partitions[t.Name], p.ID)
		}
	}
	if len(partitions) == 0 {
		return nil, errors.New("stream: the topics do not exist yet")
	}
	committed, err := client.OffsetFetch(ctx,
		&kafka.OffsetFetchRequest{GroupID: l.cfg.Group, Topics: partitions})
	if err == nil {
		err = committed.Error
	}
	if err != nil {
		return nil, fmt.Errorf("stream: committed offsets: %w", err)
	}
	all, err := listOffsets(ctx, client, partitions)
	if err != nil {
		return nil, err
	}
	for topic, parts := range committed.Topics {
		for _, p := range parts {
			at := topicPartition{topic, p.Partition}
			o, known := all[at]
			if p.Error != nil || !known {
				return nil, errors.Join(fmt.Errorf("stream: offsets of %s/%d are unknown", topic,
					p.Partition), p.Error)
			}
			all[at] = offsetBounds{max(p.CommittedOffset, o.first), o.last}
		}
	}
	return all, nil
}
