package bootstrap

import (
	"context"
	"time"

	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/shop"
	"storefront.internal/shared/catalog"
)

// reader asks a shop for its pages, one at a time: the next one while the last one is being saved.
type reader struct {
	ctx     context.Context
	cancel  context.CancelFunc
	numbers interface {
		NextFetch(ctx context.Context) (int64, error)
	}
	shop  shop.Opened
	ahead *asking
}

// asking is a page that was asked for before it was wanted.
type asking struct {
	entity catalog.Entity
	cursor provider.Cursor
	answer chan answer
}

type answer struct {
	page     provider.Page
	number   int64
	err      error
	panicked any // it is the reader's, who has somebody to recover it
}

func newReader(ctx context.Context, store Store, of shop.Opened) *reader {
	ctx, cancel := context.WithCancel(ctx)
	return &reader{ctx: ctx, cancel: cancel, numbers: store, shop: of}
}

// read returns a page and the number that was taken before it was asked for.
func (r *reader) read(e catalog.Entity, at provider.Cursor) (provider.Page, int64, error) {
	if a := r.ahead; a == nil || a.entity != e || a.cursor != at {
		r.end()
		r.begin(e, at)
	}
	got := <-r.ahead.answer
	r.ahead = nil
	if got.panicked != nil {
		panic(got.panicked)
	}
	return got.page, got.number, got.err
}

// begin asks for a page that will be read.
func (r *reader) begin(e catalog.Entity, at provider.Cursor) {
	a := &asking{e, at, make(chan answer, 1)}
	r.ahead = a
	go func() {
		var got answer
		defer func() {
			got.panicked = recover()
			a.answer <- got
		}()
		if got.number, got.err = r.numbers.NextFetch(r.ctx); got.err == nil {
			got.page, got.err = r.shop.Adapter.Page(r.ctx, r.shop.Store, e, time.Time{}, at)
		}
	}()
}

// end waits for what nobody wants any more.
func (r *reader) end() {
	if r.ahead != nil {
		<-r.ahead.answer
		r.ahead = nil
	}
}

// close ends what is under way.
func (r *reader) close() {
	r.cancel()
	r.end()
}
