package httpapi

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"storefront.internal/edge/internal/intake"
	"storefront.internal/edge/internal/ratelimit"
	"storefront.internal/shared/problem"
	"storefront.internal/shared/signal"
	"storefront.internal/shared/storekey"
)

type grantAll struct{}

func (grantAll) Resolve(context.Context, []byte) (storekey.Grant, error) {
	return storekey.Grant{KeyID: "key_a", ConnectionID: "con_mine", StoreID: "str_mine",
		Scopes: []storekey.Scope{storekey.SignalsWrite}}, nil
}

func (grantAll) Known(context.Context, []byte) (storekey.Grant, bool) { return storekey.Grant{}, false }

type acceptAll struct{ results []signal.Result }

func (a acceptAll) Record(_ context.Context, _ intake.Request, charge func(int)) ([]signal.Result, error) {
	charge(len(a.results))
	return a.results, nil
}

// BenchmarkRequest measures the transport: every check, the answer and the metrics, without a socket or a
// store.
func BenchmarkRequest(b *testing.B) {
	s := New(Config{Keys: grantAll{}, Signals: acceptAll{results: make([]signal.Result, 10)},
		Problems: problem.New(errorsBase), Now: time.Now,
		RateLimiter: ratelimit.New(ratelimit.Config{PerKey: ratelimit.Quota{PerSecond: 1e9, Burst: 1e9},
			PerAddress: ratelimit.Quota{PerSecond: 1e9, Burst: 1e9}}),
		Metrics: NewMetrics(prometheus.NewRegistry()), Logger: slog.New(slog.DiscardHandler),
		LogSample: 100})
	var ctx fasthttp.RequestCtx
	b.ReportAllocs()
	for b.Loop() {
		ctx.Response.Reset()
		ctx.Request.Header.SetMethod("POST")
		ctx.Request.SetRequestURI(myPath)
		ctx.Request.Header.Set("Authorization", "Bearer spk_0123456789012345678901234567890123456789")
		ctx.Request.Header.SetContentType("application/json")
		ctx.Request.Header.SetUserAgent("Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X)")
		ctx.Request.SetBodyString(batch)
		s.handle(&ctx)
		if ctx.Response.StatusCode() != 202 {
			b.Fatalf("%d %s", ctx.Response.StatusCode(), ctx.Response.Body())
		}
	}
}
