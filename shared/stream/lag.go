package stream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/segmentio/kafka-go"
)

// LagConfig says whose lag is measured. Zero values take the defaults named.
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

// Lag measures how far a group is behind, from what the broker says: committed offsets and ends. It knows nothing of the process's own consumer, so it also tells of one that is stuck, and of partitions that nobody reads.
// Every member measures the whole group; a query takes the greatest.
type Lag struct {
	cfg LagConfig

	records *prometheus.GaugeVec
	oldest  *prometheus.GaugeVec // without labels, so that it can be left out
	up      prometheus.Gauge
}

// NewLag registers the figures; Run fills them.
func NewLag(cfg LagConfig) *Lag {
	if cfg.Every <= 0 {
		cfg.Every = 10 * time.Second
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Lag{cfg: cfg,
		records: register(cfg.Registerer, prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "storefront_relay_consumer_lag_records",
			Help: "Records between the group's committed offset and the end, as the broker tells. Every relay tells it of every partition: take the greatest.",
		}, []string{"topic", "partition"})),
		oldest: register(cfg.Registerer, prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "storefront_relay_oldest_unread_seconds",
			Help: "Age of the oldest record that is not committed, of all partitions, as the broker tells; 0 when there is none. Alert on 24 h.",
		}, nil)),
		up: register(cfg.Registerer, prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "storefront_relay_lag_up", Help: "1 while the broker tells the lag; at 0 the figures of the lag are left out.",
		})),
	}
}

// Run measures until ctx ends.
func (l *Lag) Run(ctx context.Context) error {
	transport := &kafka.Transport{ClientID: l.cfg.ClientID, DialTimeout: 2 * time.Second, MetadataTTL: time.Second, MetadataTopics: l.cfg.Topics,
		TLS: l.cfg.Security.tls, SASL: l.cfg.Security.sasl}
	defer transport.CloseIdleConnections()
	client := &kafka.Client{Addr: kafka.TCP(l.cfg.Brokers...), Timeout: 5 * time.Second, Transport: transport}
	tick := time.NewTicker(l.cfg.Every)
	defer tick.Stop()
	for {
		if err := l.measure(ctx, client); err != nil && ctx.Err() == nil {
			l.unknown()
			l.cfg.Logger.Warn("the lag is not known", "group", l.cfg.Group, "error", err)
		}
		select {
		case <-ctx.Done():
			l.unknown()
			return nil
		case <-tick.C:
		}
	}
}

// unknown leaves the figures out: one that is not known is not shown.
func (l *Lag) unknown() {
	l.up.Set(0)
	l.records.Reset()
	l.oldest.Reset()
}

// span is what of one partition is not committed yet.
type span struct{ next, end int64 }

func (l *Lag) measure(ctx context.Context, client *kafka.Client) error {
	spans, err := l.spans(ctx, client)
	if err != nil {
		return err
	}
	now := l.cfg.Now()
	var oldest time.Duration
	for at, s := range spans {
		if s.end > s.next {
			f := &fetcher{client: client, topic: at.topic, partition: at.partition, next: s.next, maxBytes: 1}
			if batch, err := f.fetch(ctx); err == nil && len(batch.Records) > 0 {
				oldest = max(oldest, now.Sub(batch.Records[0].Time))
			}
		}
		l.records.WithLabelValues(at.topic, strconv.Itoa(at.partition)).Set(float64(max(s.end-s.next, 0)))
	}
	l.oldest.WithLabelValues().Set(oldest.Seconds())
	l.up.Set(1)
	return nil
}

// spans asks for the partitions, the committed offsets and the ends. A partition of which nothing is committed begins at the first offset that there is.
func (l *Lag) spans(ctx context.Context, client *kafka.Client) (map[place]span, error) {
	partitions, request, err := l.partitions(ctx, client)
	if err != nil {
		return nil, err
	}
	committed, err := client.OffsetFetch(ctx, &kafka.OffsetFetchRequest{GroupID: l.cfg.Group, Topics: partitions})
	if err == nil {
		err = committed.Error
	}
	if err != nil {
		return nil, fmt.Errorf("stream: committed offsets: %w", err)
	}
	ends, err := listOffsets(ctx, client, request(kafka.LastOffsetOf))
	if err != nil {
		return nil, err
	}
	firsts, err := listOffsets(ctx, client, request(kafka.FirstOffsetOf))
	if err != nil {
		return nil, err
	}
	spans := map[place]span{}
	for topic, parts := range committed.Topics {
		for _, p := range parts {
			at := place{topic, p.Partition}
			end, known := ends[at]
			first, alsoKnown := firsts[at]
			if p.Error != nil || !known || !alsoKnown {
				return nil, errors.Join(fmt.Errorf("stream: offsets of %s/%d are not known", topic, p.Partition), p.Error)
			}
			spans[at] = span{next: max(p.CommittedOffset, first), end: end}
		}
	}
	return spans, nil
}

// partitions are those of the topics that exist, and a maker of requests for one offset of each.
func (l *Lag) partitions(ctx context.Context, client *kafka.Client) (map[string][]int, func(func(int) kafka.OffsetRequest) map[string][]kafka.OffsetRequest, error) {
	meta, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: l.cfg.Topics})
	if err != nil {
		return nil, nil, fmt.Errorf("stream: metadata: %w", err)
	}
	partitions := map[string][]int{}
	for _, t := range meta.Topics {
		for _, p := range t.Partitions {
			partitions[t.Name] = append(partitions[t.Name], p.ID)
		}
	}
	if len(partitions) == 0 {
		return nil, nil, errors.New("stream: the topics do not exist yet")
	}
	return partitions, func(offset func(int) kafka.OffsetRequest) map[string][]kafka.OffsetRequest {
		request := map[string][]kafka.OffsetRequest{}
		for topic, parts := range partitions {
			for _, p := range parts {
				request[topic] = append(request[topic], offset(p))
			}
		}
		return request
	}, nil
}
