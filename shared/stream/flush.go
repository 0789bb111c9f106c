package stream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/segmentio/kafka-go"
)

const (
	retryPause  = 100 * time.Millisecond // lets the transport learn of a new leader before a second attempt
	maxAttempts = 2                      // of one record in one call
)

// dispatch starts flushes as far as they are due and partitions are free. The mutex is held.
func (p *Producer) dispatch() {
	for p.queue.Len() > 0 {
		now := p.cfg.Now()
		if !p.refreshing && now.Sub(p.parts.fetchedAt) > partitionsTTL {
			p.refreshing = true
			p.work.Go(p.refreshPartitions)
		}
		if p.inFlight >= p.cfg.InFlight || !p.shouldFlush(now) {
			return
		}
		part, ok := p.parts.pick()
		if !ok {
			return
		}
		p.inFlight++
		batch := p.drainBatch()
		p.work.Go(func() { p.flush(batch, part) })
	}
}

// shouldFlush reports whether the queue is to be sent now. If not, the linger timer looks again when the
// oldest record has waited long enough. The mutex is held.
func (p *Producer) shouldFlush(now time.Time) bool {
	if p.inFlight == 0 || p.waiting >= p.cfg.GatherBytes {
		return true
	}
	left := p.cfg.Linger - now.Sub(p.queue.Front().Value.(*queuedRecord).since)
	if left <= 0 {
		return true
	}
	if !p.lingerArmed {
		p.lingerArmed = true
		p.lingerTimer.Reset(left)
	}
	return false
}

func (p *Producer) onLinger() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lingerArmed = false
	p.dispatch()
}

// drainBatch removes the records of one flush from the queue: at least one, and as many as fit. The mutex is
// held.
func (p *Producer) drainBatch() []*queuedRecord {
	var batch []*queuedRecord
	size := batchOverhead
	for p.queue.Len() > 0 {
		size += p.queue.Front().Value.(*queuedRecord).size
		if len(batch) > 0 && size > p.limit {
			break
		}
		batch = append(batch, p.pop())
	}
	return batch
}

// refreshPartitions fetches the list of the topic's partitions. When that fails and no list was ever fetched,
// nothing can be sent, and the queue is refused.
func (p *Producer) refreshPartitions() {
	ctx, cancel := context.WithTimeout(context.Background(), p.cfg.AttemptTimeout)
	defer cancel()
	ids, err := p.partitionIDs(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refreshing = false
	switch {
	case err == nil:
		p.parts.update(ids)
	case len(p.parts.list) == 0:
		p.refuseQueue(err)
	default:
		p.parts.fetchedAt = p.cfg.Now()
	}
	p.dispatch()
}

func (p *Producer) partitionIDs(ctx context.Context) ([]int, error) {
	res, err := p.client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{p.cfg.Topic}})
	if err != nil {
		return nil, fmt.Errorf("stream: partitions of %s: %w", p.cfg.Topic, err)
	}
	for _, t := range res.Topics {
		if t.Name != p.cfg.Topic || t.Error != nil {
			continue
		}
		ids := make([]int, 0, len(t.Partitions))
		for _, part := range t.Partitions {
			ids = append(ids, part.ID)
		}
		if len(ids) > 0 {
			return ids, nil
		}
	}
	return nil, fmt.Errorf("stream: partitions of %s: %w", p.cfg.Topic, kafka.UnknownTopicOrPartition)
}

// flush sends one batch, settles its records, and dispatches what has gathered meanwhile.
func (p *Producer) flush(batch []*queuedRecord, part int) {
	p.send(batch, part, 1)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inFlight--
	p.dispatch()
}

// send makes the attempts of a batch, from the given one on, and settles its records. It releases the
// partition, which the caller has reserved.
func (p *Producer) send(batch []*queuedRecord, part, attempt int) {
	for ; len(batch) > 0; attempt++ {
		retriable, err := p.attempt(batch, part)
		if tooLarge(err) && len(batch) > 1 {
			p.split(batch, part, attempt)
			return
		}
		again := retriable && attempt < maxAttempts && hasWaiters(batch)
		if again {
			p.metrics.retries.Inc()
			time.Sleep(retryPause)
		}
		p.mu.Lock()
		p.parts.release(part, err)
		if !again {
			p.finish(batch, err)
			p.mu.Unlock()
			return
		}
		if batch = p.finishAbandoned(batch, err); len(batch) > 0 {
			part = p.parts.retryPartition(part)
		}
		p.mu.Unlock()
	}
}

// attempt sends the batch to one partition. The error is nil exactly when the broker acknowledged it. After
// an error, retriable reports whether a second attempt may help and may use the same buffers: it may not
// while the encoder is copying them.
func (p *Producer) attempt(batch []*queuedRecord, part int) (retriable bool, err error) {
	reader := &flushReader{records: batch, headers: p.headers}
	ctx, cancel := context.WithTimeout(context.Background(), p.cfg.AttemptTimeout)
	defer cancel()
	begun := p.cfg.Now()
	res, err := p.client.Produce(ctx, &kafka.ProduceRequest{
		Topic: p.cfg.Topic, Partition: part, RequiredAcks: kafka.RequireAll, Records: reader,
		Compression: p.cfg.Compression.compression(),
	})
	p.metrics.seconds.Observe(p.cfg.Now().Sub(begun).Seconds())
	state := reader.stop()
	if state == read {
		p.metrics.records.Observe(float64(reader.taken))
	}
	switch {
	case err == nil && res.Error != nil:
		err = res.Error
	case err == nil && (state != read || reader.taken == 0):
		err = errNothingSent
	}
	return err != nil && state != reading && !permanent(err), err
}

// hasWaiters reports whether the caller of one of the records still waits.
func hasWaiters(batch []*queuedRecord) bool {
	return slices.ContainsFunc(batch, func(rec *queuedRecord) bool { return !rec.abandoned.Load() })
}

// finishAbandoned settles the records whose callers have gone and returns the others. The mutex is held.
func (p *Producer) finishAbandoned(batch []*queuedRecord, err error) (waiting []*queuedRecord) {
	for _, rec := range batch {
		if rec.abandoned.Load() {
			p.settle(rec, Unknown, err)
		} else {
			waiting = append(waiting, rec)
		}
	}
	return waiting
}

// split sends the halves of a batch that the broker finds too large, and keeps later flushes smaller for a
// while.
func (p *Producer) split(batch []*queuedRecord, part, attempt int) {
	p.mu.Lock()
	p.limit = max(min(p.limit, batchSize(batch)/2), batchOverhead)
	p.parts.reserve(p.parts.index(part)) // each half releases the partition once
	p.mu.Unlock()
	half := len(batch) / 2
	p.send(batch[:half], part, attempt)
	p.send(batch[half:], part, attempt)
}

func batchSize(batch []*queuedRecord) int {
	size := batchOverhead
	for _, rec := range batch {
		size += rec.size
	}
	return size
}

// finish settles every record of a batch after its last attempt. The mutex is held.
func (p *Producer) finish(batch []*queuedRecord, err error) {
	outcome := Unknown
	switch {
	case err == nil:
		outcome = Acknowledged
		if p.limit < p.cfg.MaxBatchBytes && batchSize(batch) > p.limit/2 { // the limit was lowered by a split
			p.limit = min(p.limit+max(p.limit/8, 1), p.cfg.MaxBatchBytes)
		}
	case tooLarge(err):
		err = errors.Join(ErrTooLarge, err)
	}
	for _, rec := range batch {
		p.settle(rec, outcome, err)
	}
}
