package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
)

// Batch is the result of one fetch of one partition: at least one record, in the order of offsets, without a
// gap to the batch before.
type Batch struct {
	Topic         string
	Partition     int
	Records       []Record
	HighWatermark int64 // the partition's end when it was fetched

	from, to int64 // the offsets that it covers, without to
}

// Span returns the offsets that record i stands for, without to: its own, the gap before it, and for the last
// record what follows it in the fetch. The spans of a partition's batches have no gaps.
func (b *Batch) Span(i int) (from, to int64) {
	from, to = b.from, b.Records[i].Offset+1
	if i > 0 {
		from = b.Records[i-1].Offset + 1
	}
	if i == len(b.Records)-1 {
		to = max(to, b.to)
	}
	return from, to
}

// Record is one record. Value is a copy; it is nil when the record has none.
type Record struct {
	Offset int64
	Time   time.Time // set by the producer
	Value  []byte
	Trace  string // W3C traceparent of the producer; "" without one
}

const (
	fetchWait = 500 * time.Millisecond // how long the broker holds a fetch that finds nothing
	// between fetches at the end of a partition, so that several records share one
	fetchPause = 20 * time.Millisecond
)

// fetcher reads one partition from next on.
type fetcher struct {
	client    *kafka.Client
	topic     string
	partition int
	next      int64 // offset to fetch
	delivered int64 // end of the last batch that was handed over
	maxBytes  int64
}

// fetch fetches once and moves next past the records. The batch is empty when there is nothing new. A broken
// record set gives the records before the defect first, and an error the next time.
func (f *fetcher) fetch(ctx context.Context) (batch Batch, err error) {
	defer func() {
		if v := recover(); v != nil { // kafka-go's decoder may panic on malformed input
			err = fmt.Errorf("stream: fetch %s/%d: decoder panicked with %T", f.topic, f.partition, v)
		}
	}()
	res, err := f.client.Fetch(ctx, &kafka.FetchRequest{
		Topic: f.topic, Partition: f.partition, Offset: f.next, MinBytes: 1, MaxBytes: f.maxBytes,
		MaxWait: fetchWait,
	})
	if err == nil {
		err = res.Error
	}
	if err != nil {
		return Batch{}, fmt.Errorf("stream: fetch %s/%d at %d: %w", f.topic, f.partition, f.next, err)
	}
	batch = Batch{Topic: f.topic, Partition: f.partition, HighWatermark: res.HighWatermark, from: f.next}
	err = f.read(res.Records, &batch)
	batch.to = f.next
	if len(batch.Records) > 0 {
		return batch, nil
	}
	return batch, err
}

// read copies the records from next on: the broker may send a batch that begins earlier. It skips control
// batches and counts their offsets, so that a partition that ends with one is read to its end.
func (f *fetcher) read(records kafka.RecordReader, batch *Batch) error {
	stream, ok := records.(*protocol.RecordStream)
	if !ok {
		return f.readSet(records, batch, false)
	}
	for _, set := range stream.Records {
		_, control := set.(*protocol.ControlBatch)
		if err := f.readSet(set, batch, control); err != nil {
			return err
		}
	}
	return nil
}

func (f *fetcher) readSet(records kafka.RecordReader, batch *Batch, control bool) error {
	for {
		r, err := records.ReadRecord()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("stream: read %s/%d at %d: %w", f.topic, f.partition, f.next, err)
		}
		value, err := kafka.ReadAll(r.Value)
		closeBytes(r.Key)
		closeBytes(r.Value)
		if err != nil {
			return fmt.Errorf("stream: read %s/%d at %d: %w", f.topic, f.partition, r.Offset, err)
		}
		if r.Offset < f.next {
			continue
		}
		if !control {
			batch.Records = append(batch.Records,
				Record{Offset: r.Offset, Time: r.Time, Value: value, Trace: traceOf(r.Headers)})
		}
		f.next = r.Offset + 1
	}
}

// traceOf returns the traceparent among the headers of a record; "" for a value that is too long to be one.
func traceOf(headers []kafka.Header) string {
	for _, h := range headers {
		if h.Key == traceHeader && len(h.Value) <= maxTrace {
			return string(h.Value)
		}
	}
	return ""
}

// maxTrace is the length of a traceparent.
const maxTrace = 55

func closeBytes(b kafka.Bytes) {
	if b != nil {
		_ = b.Close() // only returns memory
	}
}

// bounds returns the first offset that the broker has and the one after the last.
func (f *fetcher) bounds(ctx context.Context) (first, last int64, err error) {
	all, err := listOffsets(ctx, f.client, map[string][]int{f.topic: {f.partition}})
	if err != nil {
		return 0, 0, err
	}
	found, ok := all[topicPartition{f.topic, f.partition}]
	if !ok {
		return 0, 0, fmt.Errorf("stream: offsets of %s/%d: no answer", f.topic, f.partition)
	}
	return found.first, found.last, nil
}

type topicPartition struct {
	topic     string
	partition int
}

// offsetBounds are the first available offset of a partition and the one after the last.
type offsetBounds struct{ first, last int64 }

// listOffsets fetches the bounds of partitions and leaves out those that answer with an error.
func listOffsets(ctx context.Context, client *kafka.Client, partitions map[string][]int) (
	map[topicPartition]offsetBounds, error) {
	request := map[string][]kafka.OffsetRequest{}
	for topic, ids := range partitions {
		for _, id := range ids {
			request[topic] = append(request[topic], kafka.FirstOffsetOf(id), kafka.LastOffsetOf(id))
		}
	}
	res, err := client.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: request})
	if err != nil {
		return nil, fmt.Errorf("stream: list offsets: %w", err)
	}
	all := map[topicPartition]offsetBounds{}
	for topic, parts := range res.Topics {
		for _, p := range parts {
			if p.Error == nil {
				all[topicPartition{topic, p.Partition}] = offsetBounds{p.FirstOffset, p.LastOffset}
			}
		}
	}
	return all, nil
}
