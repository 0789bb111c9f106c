package erase

import (
	"context"
	"errors"

	"storefront.internal/engine-relay/internal/record"
	"storefront.internal/shared/deliveries"
)

// errLost says that another relay works on the requests now.
var errLost = errors.New("the claim was lost")

// queue takes the visitors out of what waits for the engine or died, and returns who may be sending what it was.
func (e *Eraser) queue(ctx context.Context, w *Work) ([]deliveries.Sent, error) {
	r := deliveries.Rewrite{ConnectionID: w.ConnectionID, Needles: w.needles(), Body: w.Erased().Body, Chunk: chunk}
	mark, err := e.Queue.Mark(ctx, w.ConnectionID)
	if err != nil {
		return nil, err
	}
	passes := []func(context.Context, deliveries.Rewrite, deliveries.Place) (deliveries.Place, bool, error){
		e.Queue.RewriteDead, e.Queue.RewriteWaiting,
	}
	for _, pass := range passes {
		var at deliveries.Place
		for more := true; more; {
			if at, more, err = pass(ctx, r, at); err != nil {
				return nil, err
			}
			if err := e.next(ctx, w); err != nil {
				return nil, err
			}
		}
	}
	return e.Queue.RewriteRest(ctx, r, mark)
}

// unsent returns when nobody has an older body in hand.
func (e *Eraser) unsent(ctx context.Context, w *Work, sent []deliveries.Sent) error {
	for len(sent) > 0 {
		still, err := e.Queue.Sending(ctx, w.ConnectionID, sent)
		if err != nil || !still {
			return err
		}
		sleep(ctx, pause)
		if err := e.next(ctx, w); err != nil {
			return err
		}
	}
	return nil
}

// needles are what bodies hold that are to be looked at.
func (w *Work) needles() [][]byte {
	if !w.Everybody.IsZero() {
		return [][]byte{record.VisitorMark()}
	}
	var all [][]byte
	for _, v := range w.Visitors {
		all = append(all, []byte(v.ID))
	}
	for _, o := range w.Orders {
		all = append(all, record.OrderMark(o.ID))
	}
	return all
}

func (e *Eraser) buyers(ctx context.Context, w *Work) error {
	if len(w.Orders) == 0 {
		return nil
	}
	return e.pages(ctx, w, e.Store.Buyers)
}

func (e *Eraser) audits(ctx context.Context, w *Work) error {
	if w.Everybody.IsZero() {
		return nil
	}
	return e.pages(ctx, w, e.Store.Audits)
}

func (e *Eraser) decisions(ctx context.Context, w *Work) error {
	return e.chunks(ctx, w, e.Store.Decisions)
}

func (e *Eraser) signals(ctx context.Context, w *Work) error {
	return e.chunks(ctx, w, e.Store.Signals)
}

// chunks goes on until nothing is found: what is forgotten is not found again. Everybody and the visitors are two works, as
// a visitor's erasure may reach further.
func (e *Eraser) chunks(ctx context.Context, w *Work, do func(context.Context, *Work, int) (int, error)) error {
	everybody := &Work{By: w.By, ConnectionID: w.ConnectionID, Everybody: w.Everybody}
	visitors := &Work{By: w.By, ConnectionID: w.ConnectionID, Visitors: w.Visitors}
	for _, part := range []*Work{everybody, visitors} {
		for !part.Everybody.IsZero() || len(part.Visitors) > 0 {
			found, err := do(ctx, part, chunk)
			if err != nil {
				return err
			}
			if found == 0 {
				break
			}
			if err := e.next(ctx, w); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *Eraser) pages(ctx context.Context, w *Work, do func(context.Context, *Work, []byte, int) ([]byte, error)) error {
	var at []byte
	for {
		var err error
		if at, err = do(ctx, w, at, chunk); err != nil || at == nil {
			return err
		}
		if err := e.next(ctx, w); err != nil {
			return err
		}
	}
}

func (e *Eraser) parked(ctx context.Context, w *Work) error {
	var at int64
	for {
		var err error
		if at, err = e.Store.Parked(ctx, w, at, chunk/10); err != nil || at == 0 {
			return err
		}
		if err := e.next(ctx, w); err != nil {
			return err
		}
	}
}
