package consumer

import (
	"context"
	"time"

	"storefront.internal/engine-relay/internal/sink"
	"storefront.internal/shared/stream"
)

// gather fills batches and hands them to the workers. Records that come within the linger time go together,
// up to a transaction's size; then a free worker takes the batch, and while none is free it grows.
func (r *generationRun) gather(ctx context.Context) {
	r.linger = time.NewTimer(r.cfg.Linger)
	defer r.linger.Stop()
	r.begin()
	for ctx.Err() == nil {
		if !r.full() { // take what is there before anything is handed over
			select {
			case b, open := <-r.generation.Batches():
				if !open {
					r.send(ctx)
					return
				}
				r.add(ctx, b)
				continue
			default:
			}
		}
		if !r.next(ctx) {
			return
		}
	}
}

// begin starts an empty batch.
func (r *generationRun) begin() {
	r.current, r.lingerOver = &txBatch{batch: &sink.Batch{}}, false
	r.linger.Stop()
}

// next waits for more records, the end of the linger time, or a free worker. It reports false at the end.
func (r *generationRun) next(ctx context.Context) bool {
	in, out := r.generation.Batches(), r.batches
	if r.full() {
		in = nil
	}
	if r.current.batch.Size() == 0 || !r.lingerOver && !r.full() {
		out = nil
	}
	select {
	case <-ctx.Done():
		return false
	case <-r.linger.C:
		r.lingerOver = true
	case out <- r.current:
		r.begin()
	case b, open := <-in:
		if !open {
			r.send(ctx)
			return false
		}
		r.add(ctx, b)
	}
	return true
}

func (r *generationRun) full() bool { return r.current.batch.Size() >= r.cfg.BatchSize }

// send waits until a worker takes the current batch.
func (r *generationRun) send(ctx context.Context) {
	if r.current.batch.Size() == 0 {
		return
	}
	select {
	case <-ctx.Done():
	case r.batches <- r.current:
		r.begin()
	}
}

// add puts a partition's records into the current batch, and into further ones when it is full.
func (r *generationRun) add(ctx context.Context, b stream.Batch) {
	p := sink.Partition{Topic: b.Topic, ID: b.Partition}
	if r.halted[p] || len(b.Records) == 0 {
		return
	}
	fetched := r.unstored.add(b)
	added := 0 // records in the current batch
	for i := range b.Records {
		if r.full() {
			r.assign(fetched, added, false)
			r.send(ctx)
			if added = 0; ctx.Err() != nil {
				return
			}
		}
		if err := r.addRecord(p, &b, i); err != nil {
			r.assign(fetched, added, false)
			r.halt(p, &b.Records[i], err)
			return
		}
		added++
	}
	r.assign(fetched, added, true)
}

func (r *generationRun) addRecord(p sink.Partition, b *stream.Batch, i int) error {
	if r.current.batch.Size() == 0 {
		r.linger.Reset(r.cfg.Linger)
	}
	rec := &b.Records[i]
	m := sink.Message{Topic: p.Topic, Partition: p.ID, Offset: rec.Offset,
		Value: rec.Value, Trace: rec.Trace}
	m.From, m.To = b.Span(i)
	if p.Topic == r.cfg.Decisions {
		return r.current.batch.AddDecision(m)
	}
	return r.current.batch.AddSignals(m)
}

// assign notes how many of the fetched batch's records are in the current batch.
func (r *generationRun) assign(fetched *fetchedBatch, records int, last bool) {
	if records > 0 {
		r.unstored.assign(fetched, last)
		r.current.parts = append(r.current.parts, fetched)
	}
}

// halt stops a partition until the end of the generation: its next record is for a newer relay. The fetched
// batch is never completely stored, so the offset does not move past the record.
func (r *generationRun) halt(p sink.Partition, rec *stream.Record, err error) {
	r.halted[p] = true
	r.metrics.halted.Inc()
	r.cfg.Logger.Error("partition halted: its next record needs a newer relay; no record is lost",
		"topic", p.Topic, "partition", p.ID, "offset", rec.Offset, "error", err)
}
