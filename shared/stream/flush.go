package stream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/segmentio/kafka-go"
)

// retryPause lets the transport learn of a new leader before a second attempt.
const retryPause = 100 * time.Millisecond

// maxAttempts bounds how often a record is sent for one call.
const maxAttempts = 2

// dispatch starts the flushes that are due, as far as there are free partitions for them. The mutex is held.
func (p *Producer) dispatch(now time.Time) {
	for p.queue.Len() > 0 {
		if !p.looking && now.Sub(p.parts.at) > partitionsTTL {
			p.looking = true
			p.work.Go(p.lookUp)
		}
		if p.inFlight >= p.cfg.InFlight || !p.due(now) {
			return
		}
		part, ok := p.parts.pick(now)
		if !ok {
			return
		}
		p.inFlight++
		batch := p.take()
		p.work.Go(func() { p.flush(batch, part) })
	}
}

// due tells whether what waits is to be sent now; if not, it is looked at again when the oldest has waited long enough. The mutex is held.
func (p *Producer) due(now time.Time) bool {
	if p.inFlight == 0 || p.waiting >= p.cfg.GatherBytes {
		return true
	}
	left := p.cfg.Linger - now.Sub(p.queue.Front().Value.(*pending).since)
	if left <= 0 {
		return true
	}
	if !p.armed {
		p.armed = true
		p.gather.Reset(left)
	}
	return false
}

// gathered is called when records may have waited long enough.
func (p *Producer) gathered() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed = false
	p.dispatch(p.cfg.Now())
}

// take removes the records of one flush from the queue: at least one, and as many as fit. The mutex is held.
func (p *Producer) take() []*pending {
	var batch []*pending
	size := batchOverhead
	for p.queue.Len() > 0 {
		size += p.queue.Front().Value.(*pending).size
		if len(batch) > 0 && size > p.limit {
			break
		}
		batch = append(batch, p.pop())
	}
	return batch
}

// lookUp learns the topic's partitions. When it fails and none was ever known, nothing can be sent: what waits is refused.
func (p *Producer) lookUp() {
	ctx, cancel := context.WithTimeout(context.Background(), p.cfg.AttemptTimeout)
	defer cancel()
	ids, err := p.partitionIDs(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.looking = false
	switch {
	case err == nil:
		p.parts.update(ids, p.cfg.Now())
	case len(p.parts.list) == 0:
		p.refuseQueue(err)
	default:
		p.parts.at = p.cfg.Now()
	}
	p.dispatch(p.cfg.Now())
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

// flush sends one batch and makes room for the next.
func (p *Producer) flush(batch []*pending, part int) {
	p.send(batch, part, 1)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inFlight--
	p.dispatch(p.cfg.Now())
}

// send makes the attempts of a batch, from the given one on, and settles its records. The partition is booked, and released on the way.
func (p *Producer) send(batch []*pending, part, try int) {
	for ; ; try++ {
		attempt, taken, outcome, err := p.attempt(batch, part)
		split := tooLarge(err) && taken > 1
		again := outcome != Acknowledged && !permanent(err) && try < maxAttempts
		if split || again {
			for _, rec := range batch {
				rec.giveBack(attempt, outcome)
			}
		}
		if split {
			p.split(batch, part, try)
			return
		}
		failed := outcome != Acknowledged && !permanent(err)
		if !again || !awaited(batch) {
			p.mu.Lock()
			p.parts.release(part, failed, p.cfg.Now())
			p.finish(batch, attempt, outcome, err)
			p.mu.Unlock()
			return
		}
		p.metrics.retries.Inc()
		time.Sleep(retryPause)
		p.mu.Lock()
		p.parts.release(part, failed, p.cfg.Now())
		part = p.parts.another(part, p.cfg.Now())
		p.mu.Unlock()
	}
}

// awaited tells whether a caller still waits for one of the records that were given back.
func awaited(batch []*pending) bool {
	return slices.ContainsFunc(batch, func(rec *pending) bool { return rec.state.Load() == queued })
}

// split sends the halves of a batch that the broker finds too large, and keeps later flushes smaller.
func (p *Producer) split(batch []*pending, part, try int) {
	size := batchOverhead
	for _, rec := range batch {
		size += rec.size
	}
	p.mu.Lock()
	p.limit = max(min(p.limit, size/2), batchOverhead)
	if i := p.parts.index(part); i >= 0 {
		p.parts.list[i].flushes++ // each half releases the partition once
	}
	p.mu.Unlock()
	half := len(batch) / 2
	p.send(batch[:half], part, try)
	p.send(batch[half:], part, try)
}

// attempt sends the records whose callers still wait to one partition. A result other than Acknowledged names its error; taken is how many records went to the transport, as far as known.
func (p *Producer) attempt(batch []*pending, part int) (attempt uint64, taken int, outcome Outcome, err error) {
	reader := &flushReader{attempt: p.attempts.Add(1), records: batch, headers: p.headers}
	ctx, cancel := context.WithTimeout(context.Background(), p.cfg.AttemptTimeout)
	defer cancel()
	begun := p.cfg.Now()
	res, err := p.client.Produce(ctx, &kafka.ProduceRequest{
		Topic: p.cfg.Topic, Partition: part, RequiredAcks: kafka.RequireAll, Records: reader, Compression: p.cfg.Compression.compression(),
	})
	p.metrics.seconds.Observe(p.cfg.Now().Sub(begun).Seconds())
	outcome, err = judge(reader, res, err)
	for _, rec := range batch {
		if rec.state.Load() == reader.attempt {
			taken++
		}
	}
	p.metrics.records.Observe(float64(taken))
	return reader.attempt, taken, outcome, err
}

// judge turns the transport's answer into an outcome. A broker's refusal comes in the response with a nil error.
func judge(reader *flushReader, res *kafka.ProduceResponse, err error) (Outcome, error) {
	nothingSent := reader.stop()
	switch {
	case err == nil && res != nil && res.Error == nil && !nothingSent:
		return Acknowledged, nil
	case nothingSent:
		return Refused, errors.Join(errRevoked, err)
	case err == nil && res != nil && refusal(res.Error):
		return Refused, res.Error
	case err == nil && res != nil:
		return Unknown, res.Error
	default:
		return Unknown, err
	}
}

// finish settles every record of a batch after its last attempt. The mutex is held.
func (p *Producer) finish(batch []*pending, attempt uint64, outcome Outcome, err error) {
	if tooLarge(err) {
		err = errors.Join(ErrTooLarge, err)
	}
	for _, rec := range batch {
		if verdict, mine := rec.verdict(attempt, outcome); mine {
			p.settle(rec, verdict, err)
		}
	}
}
