package consume

import (
	"context"
	"time"

	"storefront.internal/engine-relay/internal/record"
	"storefront.internal/shared/stream"
)

// place names a partition.
type place struct {
	topic     string
	partition int
}

// gather fills loads and hands them to the workers. What comes within the linger goes together, up to a transaction's size;
// a worker that is free takes it then, and while none is it grows.
func (r *run) gather(ctx context.Context) {
	r.linger = time.NewTimer(r.cfg.Linger)
	defer r.linger.Stop()
	r.begin()
	for ctx.Err() == nil {
		if !r.full() {
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

// begin makes an empty load the current one.
func (r *run) begin() {
	r.current, r.ripe = &load{batch: &record.Batch{}}, false
	r.linger.Stop()
}

// next waits for more records, for the load's time, or for a free worker, whichever comes first. It reports false at the end.
func (r *run) next(ctx context.Context) bool {
	in, out := r.generation.Batches(), r.loads
	if r.full() {
		in = nil
	}
	if r.current.batch.Size() == 0 || !r.ripe && !r.full() {
		out = nil
	}
	select {
	case <-ctx.Done():
		return false
	case <-r.linger.C:
		r.ripe = true
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

func (r *run) full() bool { return r.current.batch.Size() >= r.cfg.BatchSize }

// send waits until a worker takes what was gathered.
func (r *run) send(ctx context.Context) {
	if r.current.batch.Size() == 0 {
		return
	}
	select {
	case <-ctx.Done():
	case r.loads <- r.current:
		r.begin()
	}
}

// add puts a partition's records into the current load, and into further ones where it is full.
func (r *run) add(ctx context.Context, b stream.Batch) {
	p := place{b.Topic, b.Partition}
	if r.halted[p] || len(b.Records) == 0 {
		return
	}
	one := r.holdings.take(b)
	added := 0 // records of the batch in the current load
	for i := range b.Records {
		if r.full() {
			r.hold(one, added, false)
			r.send(ctx)
			if added = 0; ctx.Err() != nil {
				return
			}
		}
		if err := r.addRecord(p, &b.Records[i]); err != nil {
			r.hold(one, added, false)
			r.halt(p, &b.Records[i], err)
			return
		}
		added++
	}
	r.hold(one, added, true)
}

func (r *run) addRecord(p place, rec *stream.Rec) error {
	if r.current.batch.Size() == 0 {
		r.linger.Reset(r.cfg.Linger)
	}
	m := record.Message{Topic: p.topic, Partition: p.partition, Offset: rec.Offset, Value: rec.Value, Trace: rec.Trace}
	if p.topic == r.cfg.Decisions {
		return r.current.batch.AddDecision(m)
	}
	return r.current.batch.AddSignals(m)
}

// hold notes that the current load holds that many of the batch's records.
func (r *run) hold(one *held, records int, last bool) {
	if records > 0 {
		r.holdings.part(one, last)
		r.current.parts = append(r.current.parts, one)
	}
}

// halt leaves the partition where it is for as long as the generation lasts: its next record is for a newer relay. Its
// batch is never whole, so no offset moves past it.
func (r *run) halt(p place, rec *stream.Rec, err error) {
	r.halted[p] = true
	r.metrics.halted.Inc()
	r.cfg.Logger.Error("partition halted: its next record needs a newer relay; nothing is lost, it is read after the roll-out",
		"topic", p.topic, "partition", p.partition, "offset", rec.Offset, "error", err)
}
