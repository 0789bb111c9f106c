package stream

import (
	"context"
	"errors"
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
	for p.queue.first != nil {
		now := p.cfg.Now()
		if !p.refreshing && now.Sub(p.parts.fetchedAt) > partitionsTTL {
			p.refreshing = true
			p.work.Go(p.refreshPartitions)
		}
		if p.parts.inFlight >= p.cfg.InFlight || !p.shouldFlush(now) {
			return
		}
		at, err := p.parts.pick()
		switch {
		case err != nil:
			p.refuseQueue(err)
			return
		case at == nil:
			return
		}
		batch := p.drainBatch(at)
		p.work.Go(func() { p.flush(batch, at, 1) })
	}
}

// shouldFlush reports whether the queue is to be sent now. If not, the linger timer looks again when the
// oldest record has waited long enough. The mutex is held.
func (p *Producer) shouldFlush(now time.Time) bool {
	if p.parts.inFlight == 0 || p.waiting >= p.cfg.GatherBytes {
		return true
	}
	left := p.cfg.Linger - now.Sub(p.queue.first.since)
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

// drainBatch removes the records of one flush from the queue: at least one, and as many as fit. A flush that
// probes a leader has one only, since it may take as long as an attempt may. The mutex is held.
func (p *Producer) drainBatch(at *reservation) []*queuedRecord {
	limit := p.limit
	if at.probe {
		limit = 0
	}
	var batch []*queuedRecord
	size := batchOverhead
	for p.queue.first != nil {
		size += p.queue.first.size
		if len(batch) > 0 && size > limit {
			break
		}
		batch = append(batch, p.pop())
	}
	return batch
}

// flush sends one batch, settles its records, and dispatches what has gathered meanwhile.
func (p *Producer) flush(batch []*queuedRecord, at *reservation, attempt int) {
	p.send(batch, at, attempt)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dispatch()
}

// send makes the attempts of a batch, from the given one on, and settles its records. It releases the
// reservation.
func (p *Producer) send(batch []*queuedRecord, at *reservation, attempt int) {
	for ; len(batch) > 0; attempt++ {
		r := p.attempt(batch, at, attempt)
		if !p.ended(at, r) {
			return
		}
		if tooLarge(r.err) && len(batch) > 1 {
			p.split(batch, at, attempt)
			return
		}
		again := r.retriable && attempt < maxAttempts && hasWaiters(batch)
		if again {
			p.metrics.retries.Inc()
			p.metrics.resentFailed.Add(float64(r.written))
			time.Sleep(retryPause)
		}
		p.mu.Lock()
		p.parts.release(at)
		if !again {
			p.finish(batch, r.err)
			p.mu.Unlock()
			return
		}
		if batch = p.finishAbandoned(batch, r.err); len(batch) > 0 {
			at = p.parts.reserve(p.parts.retryPartition(at))
		}
		p.mu.Unlock()
	}
}

// ended notes how an attempt ended, for those that follow, and reports whether it still has its records. If
// not, it releases the reservation.
func (p *Producer) ended(at *reservation, r result) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	at.ended = true
	if at.timer != nil {
		at.timer.Stop()
	}
	p.parts.note(at, r)
	p.metrics.unreachable.Set(float64(p.parts.unreachableLeaders()))
	if at.moved {
		p.parts.release(at)
	}
	return !at.moved
}

// result is how an attempt ended.
type result struct {
	err       error     // nil exactly when the broker acknowledged the batch
	answered  bool      // by the broker, though it may be with an error
	retriable bool      // a second attempt may help and may use the same buffers
	sent      time.Time // when the encoder began
	ended     time.Time
	written   int // records that the broker may have
}

// attempt sends the batch to one partition. A second attempt may not use the buffers while the encoder is
// copying them.
func (p *Producer) attempt(batch []*queuedRecord, at *reservation, number int) (r result) {
	reader := &flushReader{records: batch, headers: p.headers, now: p.cfg.Now}
	ctx, cancel := context.WithTimeout(p.attempts, p.cfg.AttemptTimeout)
	defer cancel()
	timer := time.AfterFunc(at.patience, func() { p.onSlow(reader, at, number) })
	defer timer.Stop()
	res, err := p.client.Produce(ctx, &kafka.ProduceRequest{
		Topic: p.cfg.Topic, Partition: at.part.id, RequiredAcks: kafka.RequireAll, Records: reader,
		Compression: p.cfg.Compression.compression(),
	})
	ended := p.cfg.Now()
	p.metrics.seconds.Observe(ended.Sub(at.began).Seconds())
	state := reader.stop()
	r = result{err: err, answered: err == nil, sent: reader.sent(at.began), ended: ended}
	if state == read {
		r.written = reader.taken
		p.metrics.records.Observe(float64(reader.taken))
	}
	switch {
	case err == nil && res.Error != nil:
		r.err = res.Error
		// The other replicas have not acknowledged in time, so the leader is no better than one that hangs.
		r.answered = !errors.Is(r.err, kafka.RequestTimedOut)
	case err == nil && (state != read || reader.taken == 0):
		r.err = errNothingSent
	}
	r.retriable = r.err != nil && state != reading && !permanent(r.err)
	return r
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
func (p *Producer) split(batch []*queuedRecord, at *reservation, attempt int) {
	p.mu.Lock()
	p.limit = max(min(p.limit, batchSize(batch)/2), batchOverhead)
	second := p.parts.reserve(at.part) // each half releases one
	p.mu.Unlock()
	half := len(batch) / 2
	p.send(batch[:half], at, attempt)
	p.send(batch[half:], second, attempt)
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
		p.resends.earn(len(batch))
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
