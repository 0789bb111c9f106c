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

// signalsScratch holds the buffers of one answer of recordStorefrontSignals.
type signalsScratch struct {
	results []signal.Result
	body    []byte
	audit   []byte
}

func (s *Server) recordSignals(rc *requestContext) error {
	a := s.scratch.Get().(*signalsScratch)
	defer s.scratch.Put(a)
	var audit signal.Audit
	audit, a.audit = rc.audit(a.audit)
	results, err := s.cfg.Signals.Record(tracing.WithTraceparent(&rc.callCtx, rc.trace), intake.Request{
		ConnectionID: rc.grant.ConnectionID,
		StoreID:      rc.grant.StoreID,
		Body:         rc.ctx.PostBody(),
		ReceivedAt:   rc.began,
		Audit:        audit,
		Results:      a.results[:0],
	}, func(n int) { s.charge(rc, n-1) })
	if err != nil {
		return err
	}
	for i := range results {
		if results[i].Status == signal.Accepted {
			rc.accepted++
		}
	}
	a.results, a.body = results, signal.AppendResults(a.body[:0], results)
	clear(results) // the results point into the body
	rc.ctx.SetStatusCode(fasthttp.StatusAccepted)
	rc.ctx.Response.Header.SetContentType(applicationJSON)
	rc.ctx.Response.SetBody(a.body) // copies it
	return nil
}

func (s *Server) checkSignals(rc *requestContext) error {
	body, err := s.cfg.SignalCheck.Check(rc.grant.ConnectionID, rc.ctx.PostBody(),
		func(n int) { s.charge(rc, n-1) })
	if err != nil {
		return err
	}
	respondJSON(rc.ctx, fasthttp.StatusOK, body)
	return nil
}

func (s *Server) readItem(rc *requestContext) error {
	doc, err := s.cfg.Items.Read(&rc.callCtx, itemread.Request{
		ConnectionID: rc.grant.ConnectionID,
		ItemID:       ident.ItemID(rc.pathID),
		Client:       rc.subject,
	})
	if err != nil {
		return err
	}
	s.respondItem(rc, doc)
	return nil
}

func (s *Server) recommend(rc *requestContext) error {
	answer, err := s.cfg.Recommendations.Recommend(&rc.callCtx, recommend.Request{
		ConnectionID: rc.grant.ConnectionID,
		StoreID:      rc.grant.StoreID,
		Body:         rc.ctx.PostBody(),
		Traceparent:  rc.trace,
	})
	if err != nil {
		return err
	}
	respondJSON(rc.ctx, fasthttp.StatusOK, answer.AppendJSON(nil))
	return nil
}

// health answers that the process runs and serves. It asks no store.
func (s *Server) health(rc *requestContext) error {
	rc.ctx.Response.Header.Set(fasthttp.HeaderCacheControl, "no-store")
	respondJSON(rc.ctx, fasthttp.StatusOK, []byte(`{"status":"ok"}`))
	return nil
}
