package nemesis

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/segmentio/kafka-go"

	"storefront.internal/deploy/faults/topology"
	"storefront.internal/shared/stream"
)

// RelayGroup is the relays' consumer group.
const RelayGroup = "storefront-relay"

func kafkaClient(addr string) (*kafka.Client, func()) {
	t := &kafka.Transport{DialTimeout: 3 * time.Second, MetadataTTL: time.Second}
	return &kafka.Client{Addr: kafka.TCP(addr), Timeout: 10 * time.Second, Transport: t}, t.CloseIdleConnections
}

// configured changes a setting of the topic and changes it back.
type configured struct{ addr, name, value, usual string }

func (f configured) Inject(ctx context.Context) error { return f.set(ctx, f.value) }
func (f configured) Heal(ctx context.Context) error   { return f.set(ctx, f.usual) }

func (f configured) set(ctx context.Context, value string) error {
	return again(ctx, func(ctx context.Context) error {
		client, end := kafkaClient(f.addr)
		defer end()
		answer, err := client.IncrementalAlterConfigs(ctx, &kafka.IncrementalAlterConfigsRequest{Resources: []kafka.IncrementalAlterConfigsRequestResource{{
			ResourceType: kafka.ResourceTypeTopic, ResourceName: stream.TopicSignals,
			Configs: []kafka.IncrementalAlterConfigsRequestConfig{{Name: f.name, Value: value, ConfigOperation: kafka.ConfigOperationSet}},
		}}})
		if err != nil {
			return err
		}
		var errs []error
		for _, r := range answer.Resources {
			errs = append(errs, r.Error)
		}
		return errors.Join(errs...)
	})
}

// rewound sets the group's offsets back while no relay runs: everything since is read once more.
type rewound struct {
	x       *topology.Topology
	records int64
}

func (f rewound) Inject(ctx context.Context) error {
	for _, r := range f.x.Relays {
		if err := r.Stop(ctx, syscall.SIGTERM); err != nil {
			return err
		}
	}
	return again(ctx, f.rewind)
}

func (f rewound) rewind(ctx context.Context) error {
	client, end := kafkaClient(f.x.Brokers())
	defer end()
	meta, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{stream.TopicSignals}})
	if err != nil {
		return err
	}
	var partitions []int
	for _, t := range meta.Topics {
		for _, p := range t.Partitions {
			partitions = append(partitions, p.ID)
		}
	}
	at, err := client.OffsetFetch(ctx, &kafka.OffsetFetchRequest{GroupID: RelayGroup, Topics: map[string][]int{stream.TopicSignals: partitions}})
	if err != nil {
		return err
	}
	var commits []kafka.OffsetCommit
	for _, p := range at.Topics[stream.TopicSignals] {
		if p.CommittedOffset > 0 {
			commits = append(commits, kafka.OffsetCommit{Partition: p.Partition, Offset: max(0, p.CommittedOffset-f.records)})
		}
	}
	if len(commits) == 0 {
		return nil
	}
	done, err := client.OffsetCommit(ctx, &kafka.OffsetCommitRequest{GroupID: RelayGroup, GenerationID: -1, Topics: map[string][]kafka.OffsetCommit{stream.TopicSignals: commits}})
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range done.Topics[stream.TopicSignals] {
		errs = append(errs, p.Error)
	}
	return errors.Join(errs...)
}

func (f rewound) Heal(ctx context.Context) error {
	for _, r := range f.x.Relays {
		if err := r.Start(ctx); err != nil {
			return err
		}
	}
	return nil
}

// N10: Kafka's own ways to fail. One broker has no other to lead; what retention deletes unread halts the relays by design, which
// has a test of its own.
func (n *Nemesis) kafka() (Case, bool) {
	x := n.Topology
	c := Case{Touches: []string{x.Kafka.Name}}
	switch n.random.IntN(5) {
	case 0, 1:
		c.Detail, c.Hold = "the broker stops in order and starts again", n.between(0, 3*time.Second)
		c.Fault = restarted{x.Kafka, syscall.SIGTERM}
	case 2:
		c.Detail, c.Hold = "max.message.bytes 1500", n.between(2*time.Second, 8*time.Second)
		c.Fault = configured{x.Brokers(), "max.message.bytes", "1500", "1048588"}
	case 3:
		c.Detail, c.Hold = "segment.bytes 1 MB", n.between(2*time.Second, 8*time.Second)
		c.Fault = configured{x.Brokers(), "segment.bytes", "1048576", "1073741824"}
	default:
		f := rewound{x, 1 + n.random.Int64N(200)}
		c.Detail, c.Hold = fmt.Sprintf("the relays' offsets are set back by %d", f.records), n.between(0, 2*time.Second)
		c.Fault, c.Touches = f, []string{x.Kafka.Name, x.Relays[0].Name, x.Relays[1].Name}
	}
	return c, true
}
