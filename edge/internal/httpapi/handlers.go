package httpapi

import (
	"github.com/valyala/fasthttp"

	"storefront.internal/edge/internal/intake"
	"storefront.internal/edge/internal/itemread"
	"storefront.internal/edge/internal/recommend"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/signal"
	"storefront.internal/shared/tracing"
)

// answer is the scratch of one answer of operation 1.
type answer struct {
	results []signal.Result
	body    []byte
}

// recordSignals is operation 1.
func (s *Server) recordSignals(x *exchange) error {
	a := s.answers.Get().(*answer)
	defer s.answers.Put(a)
	results, err := s.signals.Record(tracing.WithTraceparent(x.call, x.trace), intake.Request{
		ConnectionID: x.grant.ConnectionID,
		StoreID:      x.grant.StoreID,
		Body:         x.ctx.PostBody(),
		ReceivedAt:   x.began,
		Audit:        x.audit(),
		Results:      a.results[:0],
	}, func(n int) { s.charge(x, n-1) })
	if err != nil {
		return err
	}
	a.results, a.body = results, signal.AppendResults(a.body[:0], results)
	clear(results) // they point into the body
	x.ctx.SetStatusCode(fasthttp.StatusAccepted)
	x.ctx.Response.Header.SetContentType(applicationJSON)
	x.ctx.Response.SetBody(a.body) // which copies
	return nil
}

// readItem is operation 2.
func (s *Server) readItem(x *exchange) error {
	doc, err := s.items.Read(x.call, itemread.Request{
		ConnectionID: x.grant.ConnectionID,
		ItemID:       ident.ItemID(x.pathID),
		Client:       x.subject,
	})
	if err != nil {
		return err
	}
	s.respondItem(x, doc)
	return nil
}

// recommend is operation E1.
func (s *Server) recommend(x *exchange) error {
	answer, err := s.recommendations.Recommend(x.call, recommend.Request{
		ConnectionID: x.grant.ConnectionID,
		StoreID:      x.grant.StoreID,
		Body:         x.ctx.PostBody(),
		Traceparent:  x.trace,
	})
	if err != nil {
		return err
	}
	respondJSON(x.ctx, fasthttp.StatusOK, answer.AppendJSON(nil))
	return nil
}

// health is operation 3: the process lives and serves. It asks nobody.
func (s *Server) health(x *exchange) error {
	x.ctx.Response.Header.Set(fasthttp.HeaderCacheControl, "no-store")
	respondJSON(x.ctx, fasthttp.StatusOK, []byte(`{"status":"ok"}`))
	return nil
}
