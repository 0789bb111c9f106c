package erase

import (
	"context"

	"storefront.internal/engine-relay/internal/sink"
	"storefront.internal/shared/backoff"
	"storefront.internal/shared/deliveries"
)

// redactQueue redacts queued and dead-lettered bodies, and returns the leases that may still send older ones.
func (e *Eraser) redactQueue(ctx context.Context, c *Claim) ([]deliveries.ActiveLease, error) {
	r := deliveries.Redaction{
		ConnectionID: c.ConnectionID, Patterns: c.patterns(), Body: c.Erasures().RedactBody, Chunk: chunk,
	}
	mark, err := e.Queue.HighWater(ctx, c.ConnectionID)
	if err != nil {
		return nil, err
	}
	type step func(context.Context, deliveries.Redaction, deliveries.Cursor) (deliveries.Cursor, bool, error)
	for _, redact := range []step{e.Queue.RedactDead, e.Queue.RedactWaiting} {
		var at deliveries.Cursor
		for more := true; more; {
			if at, more, err = redact(ctx, r, at); err != nil {
				return nil, err
			}
			if err := e.renewClaim(ctx, c); err != nil {
				return nil, err
			}
		}
	}
	return e.Queue.RedactRemaining(ctx, r, mark)
}

// awaitActiveLeases returns when no worker has an older body in memory.
func (e *Eraser) awaitActiveLeases(ctx context.Context, c *Claim, leases []deliveries.ActiveLease) error {
	for len(leases) > 0 {
		active, err := e.Queue.AnyActive(ctx, c.ConnectionID, leases)
		if err != nil || !active {
			return err
		}
		_ = backoff.Sleep(ctx, leaseInterval) // renewClaim reports the end of ctx
		if err := e.renewClaim(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// patterns select the bodies that may have something to redact.
func (c *Claim) patterns() [][]byte {
	if !c.WholeConnection.IsZero() {
		return [][]byte{sink.VisitorPattern()}
	}
	var all [][]byte
	for _, v := range c.Visitors {
		all = append(all, []byte(v.ID))
	}
	for _, o := range c.Orders {
		all = append(all, sink.OrderPattern(o.ID))
	}
	return all
}

// maxBuyers is the most visitors that are erased for one order: it has one buyer, perhaps with a second
// device. A purchase signal is sent with a public key, so a stranger can name any order and any visitor; if
// all of them were erased, a buyer who asks to be forgotten could take others along.
const maxBuyers = 3

func (e *Eraser) orders(ctx context.Context, c *Claim) error {
	if len(c.Orders) == 0 {
		return nil
	}
	crowded, err := e.Store.RequestBuyers(ctx, c, maxBuyers)
	if err != nil {
		return err
	}
	e.Metrics.crowded.Add(float64(crowded))
	return pages(ctx, e, c, chunk, e.Store.EraseOrders)
}

func (e *Eraser) audits(ctx context.Context, c *Claim) error {
	if c.WholeConnection.IsZero() {
		return nil
	}
	return pages(ctx, e, c, chunk, e.Store.EraseAudits)
}

func (e *Eraser) parked(ctx context.Context, c *Claim) error {
	return pages(ctx, e, c, parkedChunk, e.Store.EraseParked)
}

func (e *Eraser) decisions(ctx context.Context, c *Claim) error {
	return e.untilNone(ctx, c, e.Store.EraseDecisions)
}

func (e *Eraser) signals(ctx context.Context, c *Claim) error {
	return e.untilNone(ctx, c, e.Store.EraseSignals)
}

// untilNone erases chunks until none is found. The whole connection and the visitors are done separately,
// since the instant of a visitor's request may be the later one.
func (e *Eraser) untilNone(
	ctx context.Context, c *Claim, erase func(context.Context, *Claim, int) (int, error),
) error {
	connection := &Claim{By: c.By, ConnectionID: c.ConnectionID, WholeConnection: c.WholeConnection}
	visitors := &Claim{By: c.By, ConnectionID: c.ConnectionID, Visitors: c.Visitors}
	for _, part := range []*Claim{connection, visitors} {
		for !part.WholeConnection.IsZero() || len(part.Visitors) > 0 {
			found, err := erase(ctx, part, chunk)
			if err != nil {
				return err
			}
			if found == 0 {
				break
			}
			if err := e.renewClaim(ctx, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// pages erases page after page. The zero cursor is the first page, and what erase returns after the last one.
func pages[Cursor comparable](
	ctx context.Context, e *Eraser, c *Claim, limit int,
	erase func(context.Context, *Claim, Cursor, int) (Cursor, error),
) error {
	var first, at Cursor
	for {
		var err error
		if at, err = erase(ctx, c, at, limit); err != nil || at == first {
			return err
		}
		if err := e.renewClaim(ctx, c); err != nil {
			return err
		}
	}
}
