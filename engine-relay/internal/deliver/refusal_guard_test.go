package deliver

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"storefront.internal/shared/ident"
)

// TestRefusalGuard plays a story: "+" is an accepted delivery, a letter is one of that connection that is
// refused alone. The outcome of a refusal: x dead-lettered, s spared, m part of a mass refusal.
func TestRefusalGuard(t *testing.T) {
	t.Parallel()
	f := func(story, want string, wantActive bool) {
		t.Helper()
		g, got := &refusalGuard{}, ""
		for _, c := range story {
			if c == '+' {
				g.accept(1)
				continue
			}
			class, _ := g.refuse(ident.ConnectionID(c))
			got += map[replyClass]string{malformed: "x", spared: "s", massRefused: "m"}[class]
		}
		if got != want || g.active() != wantActive {
			t.Errorf("%s: %s, mass refusal %v; want %s, %v", story, got, g.active(), want, wantActive)
		}
	}
	f("a", "s", false) // a new guard knows nothing of the engine
	f("+a", "x", false)
	f("+ab+ab", "xsxs", false)
	f(strings.Repeat("+", 99)+strings.Repeat("a", 20), strings.Repeat("x", 10)+strings.Repeat("s", 10), false)
	f(strings.Repeat("+", 99)+strings.Repeat("abc", 10), strings.Repeat("x", 10)+"ss"+strings.Repeat("m", 18),
		true)
	f("aabb+aabb", "ssssxsss", false) // two connections are too few
	f("ab+abc", "ssxss", false)       // something is accepted in between
	f("abc+a", "ssmm", true)          // an engine that accepts one of two is at fault still
	f("abc"+strings.Repeat("+", 9), "ssm", true)
	f("abc"+strings.Repeat("+", 10)+"a", "ssmx", false)
	f("abc"+strings.Repeat("+a", 50), "ssm"+strings.Repeat("m", 50), true)
	f("abc"+strings.Repeat("+++a", 5), "ssmmmmmx", false)
}

// TestMassRefusalSendsProbesOnly: the refused deliveries of three connections are followed by probes at
// growing intervals, nothing is dead-lettered, and the first probe that is accepted lets everything through.
func TestMassRefusalSendsProbesOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &fakeStore{}
		for i := range 60 {
			l := lease("a")
			l.ConnectionID = ident.ConnectionID("con_" + strconv.Itoa(i))
			store.leases = append(store.leases, l)
		}
		began, engine := time.Now(), &script{}
		engine.replies = append(engine.replies, func(ctx context.Context, bodies [][]byte) Reply {
			if time.Since(began) < 5*time.Minute {
				return says(422)(ctx, bodies)
			}
			return takes(ctx, bodies)
		})
		play(t, store, engine, 6*time.Minute)
		if want := []int{200, 200, 200, 1, 1, 1}; !slices.Equal(store.limits[:6], want) {
			t.Errorf("limits %v", store.limits)
		}
		for i := 8; i < 20; i++ {
			if gap := engine.at[i].Sub(engine.at[i-1]); gap < 7*time.Second || gap > 16*time.Second {
				t.Errorf("%v before probe %d", gap, i)
			}
		}
		all := ""
		for _, c := range store.completed {
			all += statuses(c)
		}
		refused := strings.TrimRight(all, "d")
		if strings.Trim(refused, "f!") != "" || len(store.leases) != 0 {
			t.Errorf("outcomes %s, %d leases left", all, len(store.leases))
		}
		if o := store.completed[5].Lanes[0].Outcomes[0]; o.RetryIn == 0 || o.Reason != "http_422" {
			t.Errorf("a refused probe: %+v", o)
		}
	})
}
