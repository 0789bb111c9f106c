package httpapi

import (
	"encoding/json"
	"log/slog"
	"maps"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"storefront.internal/edge/internal/ratelimit"
	"storefront.internal/shared/heavyhitters"
	"storefront.internal/shared/problem"
	"storefront.internal/shared/signal"
)

// Each request adds to the loads of the connection that its key opens; one without a connection adds to none.
func TestLoadsAreCountedByConnection(t *testing.T) {
	t.Parallel()
	top := heavyhitters.New(time.Now, Loads()...)
	accepted := signal.Result{Status: signal.Accepted}
	s := New(Config{Keys: grantAll{}, Top: top,
		Signals:  acceptAll{results: []signal.Result{accepted, {Status: signal.Duplicate}, accepted}},
		Problems: problem.New(errorsBase), Now: time.Now,
		RateLimiter: ratelimit.New(ratelimit.Config{PerKey: ratelimit.Quota{PerSecond: 1e9, Burst: 1e9},
			PerAddress: ratelimit.Quota{PerSecond: 1e9, Burst: 1e9}}),
		Metrics: NewMetrics(prometheus.NewRegistry()), Logger: slog.New(slog.DiscardHandler)})
	for _, r := range []struct {
		path, contentType string
		status            int
	}{{myPath, "application/json", 202}, {myPath, "text/css", 400},
		{"/v1/connections/con_other/storefront-signals", "application/json", 403}, {"/nothing", "", 404}} {
		var ctx fasthttp.RequestCtx
		ctx.Request.Header.SetMethod("POST")
		ctx.Request.SetRequestURI(r.path)
		ctx.Request.Header.Set("Authorization", "Bearer spk_0123456789012345678901234567890123456789")
		ctx.Request.Header.SetContentType(r.contentType)
		ctx.Request.SetBodyString(batch)
		if s.handle(&ctx); ctx.Response.StatusCode() != r.status {
			t.Fatalf("%s: %d %s", r.path, ctx.Response.StatusCode(), ctx.Response.Body())
		}
	}
	w := httptest.NewRecorder()
	top.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/debug/top", nil))
	var answer map[string]struct{ Loads []heavyhitters.Load }
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		t.Fatal(err)
	}
	got := map[string]uint64{}
	for _, window := range answer { // the window may have turned
		for _, l := range window.Loads {
			for _, k := range l.Top {
				got[l.Load+" "+k.Key] += k.Count
			}
		}
	}
	if want := map[string]uint64{"accepted_signals con_mine": 2, "refused_requests con_mine": 2,
		"body_bytes con_mine": uint64(3 * len(batch))}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
