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
	for l := q.lease(query()); l != nil; l = q.lease(query()) {
		q.complete(l, all(l, deliveries.Outcome{Status: deliveries.DeadLettered, Reason: reason})...)
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
			page, err := q.control.ListDead(
				context.Background(),
				deliveries.DeadQuery{ConnectionID: c, Cursor: cursor, Limit: 4},
			)
			if err != nil {
				t.Fatal(err)
			}
			for i, d := range page.Dead {
				if i > 0 && d.DiedAt.After(page.Dead[i-1].DiedAt) {
					t.Error("not newest first")
				}
				if d.Attempts != 1 || !strings.HasPrefix(d.Reason, "rejected: no\ufffdsuch \ufffdx") ||
					len(d.Reason) > 256 {
					t.Errorf("dead %+v", d)
				}
				got = append(got, d.ID)
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
		if _, err := q.control.ListDead(context.Background(), bad); !fault.Is(err, fault.InvalidRequest) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

func TestReplay(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	q := newQueue(t)
	q.enqueue(
		interaction(shop, "dec_1", "sig_1"),
		interaction(shop, "dec_2", "sig_2"),
		interaction(other, "dec_3", "sig_3"),
	)
	bodies := scan[string](
		q,
		`SELECT string_agg(convert_from(body, 'UTF8'), ',' ORDER BY id) FROM delivery.entries`,
	)
	q.kill("http_400")
	q.recount()
	replay := func(rq deliveries.ReplayQuery, want int) {
		t.Helper()
		if n, err := q.control.ReplayDead(ctx, rq); err != nil || n != want {
			t.Fatalf("replayed %d, %v; want %d", n, err, want)
		}
		q.recount()
	}
	if _, err := q.control.ReplayDead(ctx, deliveries.ReplayQuery{}); !fault.Is(err, fault.InvalidRequest) {
		t.Errorf("replay of everything: %v", err)
	}
	replay(deliveries.ReplayQuery{ConnectionID: shop, IDs: []string{"sig_2", "sig_3"}}, 1)
	replay(deliveries.ReplayQuery{IDs: []string{"sig_3", "sig_2", "sig_none"}}, 1)
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
	if l := q.mustLease(); l.Entries[0].Attempts != 0 {
		t.Errorf("replayed with %d attempts", l.Entries[0].Attempts)
	}
}

// TestDeadWindow: the window ends to the microsecond, although counts are kept by minute.
func TestDeadWindow(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	for i := range 40 {
		q.enqueueOnly(interaction(shop, "dec_1", fmt.Sprintf("sig_%02d", i)))
	}
	q.compact()
	q.kill("http_400")
	// Deaths every seven seconds around the window's opening; what the counts hold is moved with them.
	q.admin(
		`UPDATE delivery.dead SET died_at = now() - interval '24 hours' + (right(id, 2)::integer - 20) * interval '7 seconds'`,
	)
	q.admin(`DELETE FROM delivery.dead_minutes`)
	q.admin(
		`INSERT INTO delivery.dead_minutes SELECT date_trunc('minute', died_at), connection_id, kind, count(*) FROM delivery.dead GROUP BY 1, 2, 3`,
	)
	q.recount()
	if n := q.view().Total.DeadLast24h; n == 0 || n > 20 {
		t.Errorf("%d in the window, want those after the opening", n)
	}
	replayed, err := q.control.ReplayDead(
		context.Background(),
		deliveries.ReplayQuery{IDs: []string{"sig_00", "sig_21", "sig_39"}},
	)
	if err != nil || replayed != 3 {
		t.Fatal(replayed, err)
	}
	q.recount()
	q.compact()
	q.recount()
}

// TestDeadEnvelopes: dead envelopes are listed and replayed apart from dead interactions, and leave the
// count of the last 24 hours, which the alert reads.
func TestDeadEnvelopes(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	q := newQueue(t)
	q.enqueue(interaction(shop, "dec_1", "sig_1"), envelope(shop, "obs_1"), envelope(shop, "obs_2"),
		envelope(other, "obs_3"))
	q.kill("http_422")
	list := func(dq deliveries.DeadQuery) (got []string) {
		t.Helper()
		page, err := q.control.ListDead(ctx, dq)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range page.Dead {
			got = append(got, d.ID)
		}
		slices.Sort(got)
		return got
	}
	if got := list(deliveries.DeadQuery{Kind: deliveries.Envelope}); !slices.Equal(got,
		[]string{"obs_1", "obs_2", "obs_3"}) {
		t.Errorf("dead envelopes %v", got)
	}
	if got := list(deliveries.DeadQuery{Kind: deliveries.Envelope, ConnectionID: other}); len(got) != 1 {
		t.Errorf("dead envelopes of one connection %v", got)
	}
	if got := list(deliveries.DeadQuery{}); !slices.Equal(got, []string{"sig_1"}) {
		t.Errorf("dead interactions %v", got)
	}
	first, err := q.control.ListDead(ctx, deliveries.DeadQuery{Kind: deliveries.Envelope, Limit: 1})
	if err != nil || first.Cursor == "" {
		t.Fatalf("first page %+v, %v", first, err)
	}
	if got := list(deliveries.DeadQuery{Kind: deliveries.Envelope, Cursor: first.Cursor}); len(got) != 2 {
		t.Errorf("behind the first page %v", got)
	}
	if _, err := q.control.ListDead(ctx, deliveries.DeadQuery{Cursor: first.Cursor}); !fault.Is(err,
		fault.InvalidRequest) {
		t.Errorf("an envelope's cursor in the list of interactions: %v", err)
	}
	dead := func() int64 {
		t.Helper()
		v, err := q.relay.ViewOf(ctx, deliveries.Envelope)
		if err != nil {
			t.Fatal(err)
		}
		return v.Total.DeadLast24h
	}
	if n := dead(); n != 3 {
		t.Errorf("%d dead in the last 24 hours, want 3", n)
	}
	for _, f := range []struct {
		query deliveries.ReplayQuery
		want  int
	}{
		{deliveries.ReplayQuery{ConnectionID: shop, IDs: []string{"obs_1"}}, 0}, // no such interaction
		{deliveries.ReplayQuery{Kind: deliveries.Envelope, IDs: []string{"obs_3", "sig_1"}}, 1},
		{deliveries.ReplayQuery{Kind: deliveries.Envelope, ConnectionID: shop}, 2},
	} {
		if n, err := q.control.ReplayDead(ctx, f.query); err != nil || n != f.want {
			t.Errorf("%+v: replayed %d, %v; want %d", f.query, n, err, f.want)
		}
	}
	if n := dead(); n != 0 {
		t.Errorf("%d dead in the last 24 hours after the replay", n)
	}
	q.compact()
	bodies := map[string]bool{}
	for l := q.lease(query()); l != nil; l = q.lease(query()) {
		for _, e := range l.Entries {
			bodies[string(e.Body)] = true
		}
		q.complete(l, delivered(l)...)
	}
	if len(bodies) != 3 || !bodies[`{"id":"obs_2"}`] {
		t.Errorf("the replayed bodies are %v", bodies)
	}
}

func envelope(c ident.ConnectionID, id string) deliveries.Entry {
	return deliveries.Entry{Kind: deliveries.Envelope, ConnectionID: c, LaneKey: id, ID: id,
		Body: fmt.Appendf(nil, `{"id":%q}`, id)}
}
