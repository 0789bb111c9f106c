package deliveries_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"storefront.internal/shared/deliveries"
	"storefront.internal/shared/ident"
)

// TestFairness: eight full lanes of one connection get as many turns as one lane of another.
func TestFairness(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	for i := range 400 {
		q.enqueueOnly(interaction("con_huge", fmt.Sprint("dec_", i), fmt.Sprintf("sig_h%d", i)))
	}
	small := []ident.ConnectionID{"con_a", "con_b", "con_c"}
	for _, c := range small {
		for i := range 10 {
			q.enqueueOnly(interaction(c, "dec_1", fmt.Sprintf("sig_%d", i)))
		}
	}
	q.compact()
	turns := map[ident.ConnectionID]int{}
	tq := query()
	tq.Limit = 1
	for range 40 {
		l := q.lease(tq)
		turns[l.ConnectionID]++
		q.complete(l, delivered(l)...)
	}
	for _, c := range append(small, "con_huge") {
		if turns[c] != 10 {
			t.Errorf("%s had %d turns of 40: %v", c, turns[c], turns)
		}
	}
}

// TestViewDoesNotScan: with many waiting, the view reads the first of a lane at most, and none of a lane that
// knows how old it is.
func TestViewDoesNotScan(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	q.admin(`INSERT INTO delivery.entries (connection_id, kind, lane, id, body)
	         SELECT 'con_' || n % 20, 1, n / 20 % 8, 'sig_' || n, '\x7b7d' FROM generate_series(1, 200000) AS n`)
	q.admin(`INSERT INTO delivery.deltas (connection_id, kind, pending, lanes)
	         SELECT 'con_' || n, 1, 10000, 255 FROM generate_series(0, 19) AS n`)
	q.admin(`ANALYZE delivery.entries`)
	q.compact()
	q.recount()
	if v := q.view(); len(v.Connections) != 20 || v.Total.Pending != 200000 ||
		v.Connections[7].OldestPendingAt.IsZero() {
		t.Fatalf("%+v", v.Total)
	}
	if n := entriesRead(q); n != 20*8 {
		t.Errorf("%v entries were read for 160 lanes that do not know how old they are", n)
	}
	if more, err := q.relay.RefreshLaneHeads(context.Background(), time.Hour); err != nil || more ||
		entriesRead(q) != 20*8 {
		t.Errorf("heads of lanes that were woken just now were refreshed: %v, %v", more, err)
	}
	if n := q.refreshHeads(); n != 20*8 {
		t.Errorf("%d lane heads were refreshed", n)
	}
	q.recount()
	if n := entriesRead(q); n != 0 {
		t.Errorf("%v entries were read although each lane knows how old it is", n)
	}
}

// entriesRead is how many entries the view read, by the keys of their lanes.
func entriesRead(q *queue) (n float64) {
	q.t.Helper()
	plan := explain(q, deliveries.SelectSums, int16(1)) + explain(q, deliveries.SelectOldest, int16(1))
	if strings.Contains(plan, "Seq Scan on entries") || !strings.Contains(plan, "entries_pkey") {
		q.t.Errorf("the view's plan:\n%s", plan)
	}
	for line := range strings.SplitSeq(plan, "\n") {
		i := strings.Index(line, "(actual rows=")
		if i < 0 || !strings.Contains(line, "entries") {
			continue
		}
		var rows, loops float64
		if _, err := fmt.Sscanf(line[i:], "(actual rows=%f loops=%f)", &rows, &loops); err != nil {
			q.t.Errorf("%s: %v", line, err)
		}
		n += rows * loops
	}
	return n
}

func explain(q *queue, sql string, args ...any) string {
	q.t.Helper()
	rows, err := q.pools.admin.Query(context.Background(), `EXPLAIN (ANALYZE, TIMING OFF) `+sql, args...)
	if err != nil {
		q.t.Fatal(err)
	}
	defer rows.Close()
	var plan strings.Builder
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			q.t.Fatal(err)
		}
		plan.WriteString(line + "\n")
	}
	return plan.String()
}

// TestGrants: control may enqueue, look, replay and ask for a probe; it may not touch what is delivered. Edge
// may nothing.
func TestGrants(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	refused := func(sql string) {
		t.Helper()
		if _, err := q.pools.control.Exec(context.Background(), sql); err == nil ||
			!strings.Contains(err.Error(), "42501") {
			t.Errorf("control: %s: %v", sql, err)
		}
	}
	refused(`UPDATE delivery.entries SET body = '\x7b7d'`)
	refused(`DELETE FROM delivery.entries`)
	refused(`SELECT body FROM delivery.entries`)
	refused(`UPDATE delivery.lanes SET ready = true`)
	refused(`DELETE FROM delivery.deltas`)
	refused(`UPDATE delivery.counts SET pending = 0`)
	refused(`DELETE FROM delivery.blocks`)
	refused(`UPDATE delivery.blocks SET blocked_at = now()`)
	refused(`UPDATE delivery.clock SET held = '0'`)
	refused(`INSERT INTO delivery.relays VALUES ('x', false, NULL, now())`)
}
