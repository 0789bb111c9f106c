package bootstrap

import (
	"context"
	"time"

	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/shop"
	"storefront.internal/shared/catalog"
)

// reader reads the pages of a shop, one at a time: the next one while the last one is being saved.
type reader struct {
	ctx    context.Context
	cancel context.CancelFunc
	seqs   interface {
		NextFetchSeq(ctx context.Context) (int64, error)
	}
	shop       shop.Opened
	prefetched *pageRequest
}

// pageRequest is a page that was requested before it is needed.
type pageRequest struct {
	entity   catalog.Entity
	cursor   provider.Cursor
	response chan pageResponse
}

type pageResponse struct {
	page       provider.Page
	fetchSeq   int64
	err        error
	panicValue any // raised again in read, where the job recovers it
}

func newReader(ctx context.Context, store Store, of shop.Opened) *reader {
	ctx, cancel := context.WithCancel(ctx)
	return &reader{ctx: ctx, cancel: cancel, seqs: store, shop: of}
}

// read returns a page and the fetch sequence number that was taken before its request.
func (r *reader) read(e catalog.Entity, at provider.Cursor) (provider.Page, int64, error) {
	if a := r.prefetched; a == nil || a.entity != e || a.cursor != at {
		r.discard()
		r.prefetch(e, at)
	}
	got := <-r.prefetched.response
	r.prefetched = nil
	if got.panicValue != nil {
		panic(got.panicValue)
	}
	return got.page, got.fetchSeq, got.err
}

// prefetch requests a page that will be read.
func (r *reader) prefetch(e catalog.Entity, at provider.Cursor) {
	a := &pageRequest{e, at, make(chan pageResponse, 1)}
	r.prefetched = a
	go func() {
		var got pageResponse
		defer func() {
			got.panicValue = recover()
			a.response <- got
		}()
		if got.fetchSeq, got.err = r.seqs.NextFetchSeq(r.ctx); got.err == nil {
			got.page, got.err = r.shop.Adapter.Page(r.ctx, r.shop.Store, e, time.Time{}, at)
		}
	}()
}

// discard waits for a page that will not be read.
func (r *reader) discard() {
	if r.prefetched != nil {
		<-r.prefetched.response
		r.prefetched = nil
	}
}

// close cancels a request in flight.
func (r *reader) close() {
	r.cancel()
	r.discard()
}
