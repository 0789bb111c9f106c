package nemesis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/segmentio/kafka-go"

	"storefront.internal/deploy/faults/topology"
	"storefront.internal/shared/stream"
)

func kafkaClient(addr string) (*kafka.Client, func()) {
	t := &kafka.Transport{DialTimeout: 3 * time.Second, MetadataTTL: time.Second}
	return &kafka.Client{Addr: kafka.TCP(strings.Split(addr, ",")...), Timeout: 10 * time.Second,
		Transport: t}, t.CloseIdleConnections
}

// setTopicConfig changes a setting of the topic of signals.
func setTopicConfig(addr, name, value string) func(context.Context) error {
	return func(ctx context.Context) error {
		return retry(ctx, func(ctx context.Context) error {
			client, end := kafkaClient(addr)
			defer end()
			request := kafka.IncrementalAlterConfigsRequestResource{
				ResourceType: kafka.ResourceTypeTopic, ResourceName: stream.TopicSignals,
				Configs: []kafka.IncrementalAlterConfigsRequestConfig{{Name: name, Value: value,
					ConfigOperation: kafka.ConfigOperationSet}},
			}
			response, err := client.IncrementalAlterConfigs(ctx,
				&kafka.IncrementalAlterConfigsRequest{
					Resources: []kafka.IncrementalAlterConfigsRequestResource{request},
				})
			if err != nil {
				return err
			}
			return response.Resources[0].Error
		})
	}
}

// unreadableRecord writes a record that the relays cannot read.
func unreadableRecord(addr string) func(context.Context) error {
	return func(ctx context.Context) error {
		client, end := kafkaClient(addr)
		defer end()
		_, err := client.Produce(ctx, &kafka.ProduceRequest{Topic: stream.TopicSignals, Partition: 0,
			RequiredAcks: kafka.RequireAll, Records: kafka.NewRecordReader(kafka.Record{
				Value: kafka.NewBytes([]byte(`{"record_id":"made by the fault campaign`))})})
		return err
	}
}

// rewindOffsets sets the committed offsets of the relays back.
func rewindOffsets(ctx context.Context, addr string, records int64) error {
	client, end := kafkaClient(addr)
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
	at, err := client.OffsetFetch(ctx, &kafka.OffsetFetchRequest{GroupID: topology.RelayGroup,
		Topics: map[string][]int{stream.TopicSignals: partitions}})
	if err != nil {
		return err
	}
	var commits []kafka.OffsetCommit
	for _, p := range at.Topics[stream.TopicSignals] {
		if p.CommittedOffset > 0 {
			commits = append(commits, kafka.OffsetCommit{Partition: p.Partition,
				Offset: max(0, p.CommittedOffset-records)})
		}
	}
	if len(commits) == 0 {
		return nil
	}
	done, err := client.OffsetCommit(ctx, &kafka.OffsetCommitRequest{GroupID: topology.RelayGroup,
		GenerationID: -1,
		Topics:       map[string][]kafka.OffsetCommit{stream.TopicSignals: commits}})
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range done.Topics[stream.TopicSignals] {
		errs = append(errs, p.Error)
	}
	return errors.Join(errs...)
}

// N10: restart a broker, change settings of the topic, write an unreadable record, or set the relays' offsets
// back. Data that retention
// deletes before it is read stops the relays on purpose; another test covers that.
func (n *Nemesis) kafka() (Operation, bool) {
	x, addr := n.Topology, n.Topology.Settings.KafkaBrokers
	broker := pick(n, x.Brokers...)
	o := Operation{Targets: []string{broker.Name}}
	switch n.random.IntN(6) {
	case 0, 1:
		o.Detail, o.Duration = "restart of "+broker.Name, n.randomDuration(0, 3*time.Second)
		o.Fault = restart(broker, syscall.SIGTERM)
	case 2:
		o.Detail, o.Duration = "max.message.bytes 1500", n.randomDuration(2*time.Second, 8*time.Second)
		o.Fault = fault{setTopicConfig(addr, "max.message.bytes", "1500"),
			setTopicConfig(addr, "max.message.bytes", "1048588")}
	case 3:
		o.Detail, o.Duration = "segment.bytes 1 MB", n.randomDuration(2*time.Second, 8*time.Second)
		o.Fault = fault{setTopicConfig(addr, "segment.bytes", "1048576"),
			setTopicConfig(addr, "segment.bytes", "1073741824")}
	case 4:
		o.Detail, o.Duration = "a record that is no batch of signals", time.Second
		o.Fault = fault{inject: unreadableRecord(addr)}
	default:
		records := 1 + n.random.Int64N(200)
		o.Detail, o.Duration = fmt.Sprintf("the offsets of the relays are set back by %d",
			records), n.randomDuration(0, 2*time.Second)
		o.Targets = append(o.Targets, x.Relays[0].Name, x.Relays[1].Name)
		o.Fault = fault{func(ctx context.Context) error {
			if err := errors.Join(x.Relays[0].Stop(ctx), x.Relays[1].Stop(ctx)); err != nil {
				return err
			}
			return retry(ctx, func(ctx context.Context) error { return rewindOffsets(ctx, addr, records) })
		}, func(ctx context.Context) error {
			return errors.Join(x.Relays[0].Start(ctx),
				x.Relays[1].Start(ctx))
		}}
	}
	return o, true
}
