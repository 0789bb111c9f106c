package deliveries_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"storefront.internal/shared/deliveries"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
)

// kill lets every delivery that is due die.
func (q *queue) kill(reason string) {
	q.t.Helper()
	for l := q.take(query()); l != nil; l = q.take(query()) {
		q.settle(l, all(l, deliveries.Outcome{Fate: deliveries.Died, Reason: reason})...)
	}
	q.compact()
}

func TestDeadPages(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	var want []string
	for i := range 25 {
		c := []ident.ConnectionID{shop, other}[i%2]
		q.enqueueOnly(interaction(c, fmt.Sprint("dec_", i%5), fmt.Sprintf("sig_%02d", i)))
		want = append(want, fmt.Sprintf("sig_%02d", i))
	}
	q.compact()
	q.kill("rejected: no\x00such \xff" + strings.Repeat("x", 400))
	walk := func(c ident.ConnectionID) (got []string) {
		t.Helper()
		cursor := ""
		for {
			page, err := q.control.Dead(context.Background(), deliveries.DeadQuery{ConnectionID: c, Cursor: cursor, Limit: 4})
			if err != nil {
				t.Fatal(err)
			}
			for i, d := range page.Dead {
				if i > 0 && d.DiedAt.After(page.Dead[i-1].DiedAt) {
					t.Error("not newest first")
				}
				if d.Attempts != 1 || !strings.HasPrefix(d.Reason, "rejected: no?such ?x") || len(d.Reason) > 256 {
					t.Errorf("dead %+v", d)
				}
				got = append(got, string(d.SignalID))
			}
			if cursor = page.Cursor; cursor == "" {
				slices.Sort(got)
				return got
			}
		}
	}
	if got := walk(""); !slices.Equal(got, want) {
		t.Errorf("pages hold %v", got)
	}
	if got := walk(other); len(got) != 12 {
		t.Errorf("pages of one connection hold %v", got)
	}
	for _, bad := range []deliveries.DeadQuery{{Cursor: "x"}, {Cursor: "e30"}, {Limit: 501}, {Limit: -1}} {
		if _, err := q.control.Dead(context.Background(), bad); !fault.Is(err, fault.InvalidRequest) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

func TestReplay(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	q := newQueue(t)
	q.enqueue(interaction(shop, "dec_1", "sig_1"), interaction(shop, "dec_2", "sig_2"), interaction(other, "dec_3", "sig_3"))
	bodies := scan[string](q, `SELECT string_agg(convert_from(body, 'UTF8'), ',' ORDER BY id) FROM delivery.entries`)
	q.kill("http_400")
	q.recount()
	replay := func(rq deliveries.ReplayQuery, want int) {
		t.Helper()
		if n, err := q.control.Replay(ctx, rq); err != nil || n != want {
			t.Fatalf("replayed %d, %v; want %d", n, err, want)
		}
		q.recount()
	}
	if _, err := q.control.Replay(ctx, deliveries.ReplayQuery{}); !fault.Is(err, fault.InvalidRequest) {
		t.Errorf("replay of everything: %v", err)
	}
	replay(deliveries.ReplayQuery{ConnectionID: shop, SignalIDs: []ident.SignalID{"sig_2", "sig_3"}}, 1)
	replay(deliveries.ReplayQuery{SignalIDs: []ident.SignalID{"sig_3", "sig_2", "sig_none"}}, 1)
	replay(deliveries.ReplayQuery{ConnectionID: shop}, 1)
	replay(deliveries.ReplayQuery{ConnectionID: shop}, 0)
	q.compact()
	q.recount()
	if got := scan[string](q, `SELECT string_agg(convert_from(body, 'UTF8'), ',' ORDER BY id) FROM delivery.entries`); got != bodies {
		t.Errorf("the bodies came back as %s, were %s", got, bodies)
	}
	if v := q.view(); v.Total.Pending != 3 || v.Total.DeadLast24h != 0 {
		t.Errorf("%+v", v.Total)
	}
	if l := q.mustTake(); l.Entries[0].Attempts != 0 {
		t.Errorf("replayed with %d attempts", l.Entries[0].Attempts)
	}
}

// TestDeadWindow: the window ends to the microsecond, not to the minute that the counts are kept by.
func TestDeadWindow(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	for i := range 40 {
		q.enqueueOnly(interaction(shop, "dec_1", fmt.Sprintf("sig_%02d", i)))
	}
	q.compact()
	q.kill("http_400")
	// Deaths every seven seconds around the window's opening; what the counts hold is moved with them.
	q.admin(`UPDATE delivery.dead SET died_at = now() - interval '24 hours' + (right(id, 2)::integer - 20) * interval '7 seconds'`)
	q.admin(`DELETE FROM delivery.dead_minutes`)
	q.admin(`INSERT INTO delivery.dead_minutes SELECT date_trunc('minute', died_at), connection_id, kind, count(*) FROM delivery.dead GROUP BY 1, 2, 3`)
	q.recount()
	if n := q.view().Total.DeadLast24h; n == 0 || n > 20 {
		t.Errorf("%d in the window, want those after the opening", n)
	}
	replayed, err := q.control.Replay(context.Background(), deliveries.ReplayQuery{SignalIDs: []ident.SignalID{"sig_00", "sig_21", "sig_39"}})
	if err != nil || replayed != 3 {
		t.Fatal(replayed, err)
	}
	q.recount()
	q.compact()
	q.recount()
}
