package intake_test

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"storefront.internal/edge/internal/claims"
	"storefront.internal/edge/internal/intake"
	"storefront.internal/edge/internal/intake/intaketest"
	"storefront.internal/edge/internal/ratelimit"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
)

// A connection that has used up its claims is refused before it takes memory of Redis, and the others
// are not.
func TestClaimQuota(t *testing.T) {
	now := time.Now()
	b := newFixture(t, func(c *intake.Config) {
		c.Quota = ratelimit.New(ratelimit.Config{PerKey: intake.ClaimQuota(12),
			Now: func() time.Time { return now }})
	})
	send := func(connection string, ids ...string) string {
		r := intaketest.Request(now, ids...)
		r.ConnectionID = ident.ConnectionID(connection)
		return answer(b.Record(t.Context(), r, nil))
	}
	expect(t, send("con_1", "sig_1", "sig_2", "sig_3"), "sig_1:accepted sig_2:accepted sig_3:accepted")
	for range 9 {
		expect(t, send("con_1", "sig_1", "sig_2"), "sig_1:duplicate sig_2:duplicate") // no new claims
	}
	expect(t, send("con_1", "sig_4", "sig_5", "sig_6", "sig_7"), // the last batch may pass the bound
		"sig_4:accepted sig_5:accepted sig_6:accepted sig_7:accepted")
	asked := 0
	b.before = func(context.Context) error { asked++; return nil }
	r := intaketest.Request(now, "sig_8")
	r.ConnectionID = "con_1"
	_, err := b.Record(t.Context(), r, nil)
	f := fault.From(err)
	if f.Code != fault.RateLimited || f.RetryAfter < 10*time.Second || f.RetryAfter > 21*time.Minute {
		t.Errorf("over the quota: %v, retry after %s", err, f.RetryAfter)
	}
	if asked != 0 {
		t.Error("a refused batch asks Redis")
	}
	expect(t, send("con_2", "sig_1"), "sig_1:accepted")
	if n, err := testutil.GatherAndCount(b.metrics, "storefront_edge_signal_batches_refused_total"); n != 1 ||
		err != nil {
		t.Errorf("%d series of refused batches, %v", n, err)
	}
	now = now.Add(claims.ClaimTTL)
	expect(t, send("con_1", "sig_8"), "sig_8:accepted")
}

// In no hour more claims are made than the quota allows, whenever they are made.
func TestClaimQuotaBoundsEveryHour(t *testing.T) {
	t.Parallel()
	const live = 1000
	now := time.Now()
	l := ratelimit.New(ratelimit.Config{PerKey: intake.ClaimQuota(live),
		Now: func() time.Time { return now }})
	s := ratelimit.Subject{Key: "con_1"}
	var made []time.Time
	for range 4 * 3600 {
		now = now.Add(time.Second)
		for l.Charge(s, 0).Key.Wait <= 0 {
			l.Charge(s, 1)
			made = append(made, now)
		}
	}
	for i, j := 0, 0; i < len(made); i++ {
		for made[i].Sub(made[j]) >= claims.ClaimTTL {
			j++
		}
		if n := i - j + 1; n > live+1 {
			t.Fatalf("%d claims are alive after %s", n, made[i].Sub(made[0]))
		}
	}
	if len(made) < 2*live {
		t.Errorf("only %d claims in four hours", len(made))
	}
}
