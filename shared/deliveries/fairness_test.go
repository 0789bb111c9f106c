package deliveries_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

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
		l := q.take(tq)
		turns[l.ConnectionID]++
		q.settle(l, delivered(l)...)
	}
	for _, c := range append(small, "con_huge") {
		if turns[c] != 10 {
			t.Errorf("%s had %d turns of 40: %v", c, turns[c], turns)
		}
	}
}

// TestViewDoesNotScan: with many waiting, the view reads a handful of them.
func TestViewDoesNotScan(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	q.admin(`INSERT INTO delivery.entries (connection_id, kind, lane, id, body)
	         SELECT 'con_' || n % 20, 1, n % 8, 'sig_' || n, '\x7b7d' FROM generate_series(1, 200000) AS n`)
	q.admin(`INSERT INTO delivery.deltas (connection_id, kind, pending, lanes)
	         SELECT 'con_' || n, 1, 10000, 255 FROM generate_series(0, 19) AS n`)
	q.admin(`ANALYZE delivery.entries`)
	q.compact()
	q.recount()
	if v := q.view(); len(v.Connections) != 20 || v.Total.Pending != 200000 || v.Connections[7].OldestPendingAt.IsZero() {
		t.Fatalf("%+v", v.Total)
	}
	plan := explain(q, deliveries.SelectView, int16(1))
	if strings.Contains(plan, "Seq Scan on entries") || !strings.Contains(plan, "entries_pkey") {
		t.Errorf("the view's plan:\n%s", plan)
	}
	for line := range strings.SplitSeq(plan, "\n") {
		var rows, loops float64
		if i := strings.Index(line, "(actual rows="); i >= 0 && strings.Contains(line, "entries") {
			if _, err := fmt.Sscanf(line[i:], "(actual rows=%f loops=%f)", &rows, &loops); err != nil || rows*loops > 20*8 {
				t.Errorf("reads %v rows %v times: %s", rows, loops, line)
			}
		}
	}
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

// TestGrants: control may enqueue, look, replay and ask for a probe; it may not touch what is delivered. Edge may nothing.
func TestGrants(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	refused := func(sql string) {
		t.Helper()
		if _, err := q.pools.control.Exec(context.Background(), sql); err == nil || !strings.Contains(err.Error(), "42501") {
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
