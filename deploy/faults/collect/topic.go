package collect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/segmentio/kafka-go"
)

func (t Targets) client() (*kafka.Client, func()) {
	transport := &kafka.Transport{DialTimeout: 2 * time.Second, MetadataTTL: time.Second}
	return &kafka.Client{Addr: kafka.TCP(t.Brokers...), Timeout: 10 * time.Second,
		Transport: transport}, transport.CloseIdleConnections
}

// offsets are the first offset of a partition and the one after the last.
type offsets struct{ first, end int64 }

// readOffsets reads the offsets of all partitions.
func readOffsets(ctx context.Context, client *kafka.Client, topics []string) (map[string]map[int]offsets,
	error) {
	meta, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: topics})
	if err != nil {
		return nil, err
	}
	ask := map[string][]kafka.OffsetRequest{}
	for _, topic := range meta.Topics {
		for _, p := range topic.Partitions {
			ask[topic.Name] = append(ask[topic.Name], kafka.FirstOffsetOf(p.ID), kafka.LastOffsetOf(p.ID))
		}
	}
	answer, err := client.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: ask})
	if err != nil {
		return nil, err
	}
	all := map[string]map[int]offsets{}
	for topic, partitions := range answer.Topics {
		all[topic] = map[int]offsets{}
		for _, p := range partitions {
			if p.Error != nil {
				return nil, fmt.Errorf("offsets of %s/%d: %w", topic, p.Partition, p.Error)
			}
			all[topic][p.Partition] = offsets{p.FirstOffset, p.LastOffset}
		}
	}
	return all, nil
}

// lag returns the number of records that the group has not committed, by topic and partition.
func (t Targets) lag(ctx context.Context) (map[string]int64, error) {
	lag := map[string]int64{}
	if t.Group == "" {
		return lag, nil
	}
	client, done := t.client()
	defer done()
	there, err := readOffsets(ctx, client, t.Topics)
	if err != nil {
		return nil, err
	}
	ask := map[string][]int{}
	for topic, partitions := range there {
		for p := range partitions {
			ask[topic] = append(ask[topic], p)
		}
	}
	answer, err := client.OffsetFetch(ctx, &kafka.OffsetFetchRequest{GroupID: t.Group, Topics: ask})
	if err != nil {
		return nil, err
	}
	if answer.Error != nil {
		return nil, answer.Error
	}
	for topic, partitions := range answer.Topics {
		for _, p := range partitions {
			if p.Error != nil {
				return nil, p.Error
			}
			s := there[topic][p.Partition]
			lag[fmt.Sprintf("%s/%d", topic, p.Partition)] = s.end - max(s.first, p.CommittedOffset)
		}
	}
	return lag, nil
}

// topic reads the topic of signals from its first offset, and the lag.
func (c *collector) topic(ctx context.Context) error {
	var err error
	if c.state.Lag, err = c.lag(ctx); err != nil {
		return err
	}
	client, done := c.client()
	defer done()
	there, err := readOffsets(ctx, client, []string{c.Topic})
	if err != nil {
		return err
	}
	for partition, s := range there[c.Topic] {
		c.state.Missing += s.first
		for next := s.first; next < s.end; {
			if next, err = c.fetch(ctx, client, partition, next); err != nil {
				return fmt.Errorf("partition %d at %d: %w", partition, next, err)
			}
		}
	}
	return nil
}

// fetch reads the records of one request and returns the next offset.
func (c *collector) fetch(ctx context.Context, client *kafka.Client, partition int, next int64) (int64,
	error) {
	answer, err := client.Fetch(ctx, &kafka.FetchRequest{
		Topic: c.Topic, Partition: partition, Offset: next, MinBytes: 1, MaxBytes: 8 << 20,
		MaxWait: 500 * time.Millisecond,
	})
	if err == nil {
		err = answer.Error
	}
	if err != nil {
		return next, err
	}
	for {
		r, err := answer.Records.ReadRecord()
		if errors.Is(err, io.EOF) {
			return next, nil
		}
		if err != nil {
			return next, err
		}
		value, err := kafka.ReadAll(r.Value)
		if err != nil {
			return next, err
		}
		if r.Offset < next {
			continue
		}
		next = r.Offset + 1
		c.addRecord(partition, r.Offset, value)
	}
}

// addRecord adds the signals of a record. The sink parks a record that cannot be decoded.
func (c *collector) addRecord(partition int, offset int64, value []byte) {
	var r struct {
		RecordID     string `json:"record_id"`
		ConnectionID string `json:"connection_id"`
		Signals      []struct {
			SignalID string `json:"signal_id"`
			Visitor  struct {
				VisitorID string `json:"visitor_id"`
			} `json:"visitor"`
		} `json:"signals"`
	}
	if json.Unmarshal(value, &r) != nil {
		return
	}
	for _, s := range r.Signals {
		c.state.Topic = append(c.state.Topic, TopicSignal{Connection: c.intern(r.ConnectionID),
			ID: s.SignalID, Visitor: s.Visitor.VisitorID,
			RecordID: r.RecordID, Partition: partition, Offset: offset})
	}
}
