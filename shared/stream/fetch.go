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

// Batch is what one fetch brought of one partition: records in the order of their offsets, at least one. It covers its offsets without a gap to the batch before.
type Batch struct {
	Topic         string
	Partition     int
	Records       []Rec
	HighWatermark int64 // the partition's end when it was fetched

	from, to int64 // the offsets that it covers: from included, to not
}

// Rec is one record. Value is the reader's own; it is nil when the record has none.
type Rec struct {
	Offset int64
	Time   time.Time // the producer's
	Value  []byte
	Trace  string // W3C traceparent of who produced it; "" without one
}

// fetchWait is how long the broker holds a fetch that finds nothing.
const fetchWait = 500 * time.Millisecond

// fetchRest is what a fetcher that has read its partition to the end leaves between two fetches: else each record would cost one.
const fetchRest = 20 * time.Millisecond

// fetcher reads one partition from next on.
type fetcher struct {
	client    *kafka.Client
	topic     string
	partition int
	next      int64 // to ask for
	covered   int64 // where the last batch that was handed out ended
	maxBytes  int64
}

// fetch asks once and moves next past what came. The batch is empty when nothing new is there. A broken record set gives what was whole before it, and then an error.
func (f *fetcher) fetch(ctx context.Context) (batch Batch, err error) {
	defer func() {
		if v := recover(); v != nil { // the client's decoder reads what a network gave it
			err = fmt.Errorf("stream: fetch %s/%d: decoder panicked with %T", f.topic, f.partition, v)
		}
	}()
	res, err := f.client.Fetch(ctx, &kafka.FetchRequest{
		Topic: f.topic, Partition: f.partition, Offset: f.next, MinBytes: 1, MaxBytes: f.maxBytes, MaxWait: fetchWait,
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

// read copies the records at or after next. The broker may send a batch that begins before it. Offsets of control batches are passed over, so that a partition that ends in one is read
// to its end.
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
			batch.Records = append(batch.Records, Rec{Offset: r.Offset, Time: r.Time, Value: value, Trace: traceOf(r.Headers)})
		}
		f.next = r.Offset + 1
	}
}

// traceOf is the traceparent among a record's headers. One that is too long to be one is none.
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
		_ = b.Close() // pages in memory
	}
}

// bounds are the first offset that the broker has and the one after the last.
func (f *fetcher) bounds(ctx context.Context) (first, last int64, err error) {
	at := func(offset kafka.OffsetRequest) (int64, error) {
		ends, err := listOffsets(ctx, f.client, map[string][]kafka.OffsetRequest{f.topic: {offset}})
		if err != nil {
			return 0, err
		}
		end, ok := ends[place{f.topic, f.partition}]
		if !ok {
			return 0, fmt.Errorf("stream: offsets of %s/%d: no answer", f.topic, f.partition)
		}
		return end, nil
	}
	if first, err = at(kafka.FirstOffsetOf(f.partition)); err != nil {
		return 0, 0, err
	}
	last, err = at(kafka.LastOffsetOf(f.partition))
	return first, last, err
}

// place is one partition of one topic.
type place struct {
	topic     string
	partition int
}

// listOffsets asks for one offset per partition. A partition that answers with an error is left out.
func listOffsets(ctx context.Context, client *kafka.Client, topics map[string][]kafka.OffsetRequest) (map[place]int64, error) {
	res, err := client.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: topics})
	if err != nil {
		return nil, fmt.Errorf("stream: list offsets: %w", err)
	}
	ends := map[place]int64{}
	for topic, parts := range res.Topics {
		for _, p := range parts {
			if p.Error == nil {
				ends[place{topic, p.Partition}] = max(p.FirstOffset, p.LastOffset)
			}
		}
	}
	return ends, nil
}
