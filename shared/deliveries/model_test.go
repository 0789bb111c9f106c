package deliveries_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"storefront.internal/shared/deliveries"
	"storefront.internal/shared/ident"
)

// model is what the queue must be like: a map from id to what became of it.
type model struct {
	*queue
	rt          *rapid.T
	next        int
	state       map[string]string // pending, delivered, dead
	bytes       map[string]string // as first leased
	unconfirmed map[string]bool   // unconfirmed
	leases      []*deliveries.Lease
	expired     map[*deliveries.Lease]bool
}

// TestLifecycle plays random operations on real PostgreSQL against the model.
func TestLifecycle(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	rapid.Check(t, func(rt *rapid.T) {
		q.admin(
			`TRUNCATE delivery.entries, delivery.lanes, delivery.deltas, delivery.counts, delivery.dead, delivery.dead_minutes`,
		)
		m := &model{
			queue:       q,
			rt:          rt,
			state:       map[string]string{},
			bytes:       map[string]string{},
			unconfirmed: map[string]bool{},
			expired:     map[*deliveries.Lease]bool{},
		}
		rt.Repeat(map[string]func(*rapid.T){
			"":         m.check,
			"enqueue":  m.add,
			"compact":  func(*rapid.T) { q.compact() },
			"refresh":  func(*rapid.T) { q.refreshHeads() },
			"lease":    m.leaseNext,
			"complete": m.finish,
			"expire":   m.expireAll,
			"due":      func(*rapid.T) { q.due() },
			"replay":   m.replay,
		})
	})
}

func (m *model) add(rt *rapid.T) {
	var entries []deliveries.Entry
	for range rapid.IntRange(1, 6).Draw(rt, "n") {
		m.next++
		id := fmt.Sprintf("sig_%d", m.next)
		c := ident.ConnectionID(fmt.Sprint("con_", rapid.IntRange(0, 1).Draw(rt, "connection")))
		entries = append(
			entries,
			interaction(c, fmt.Sprint("dec_", rapid.IntRange(0, 2).Draw(rt, "decision")), id),
		)
		m.state[id] = "pending"
	}
	m.enqueueOnly(entries...)
}

func (m *model) leaseNext(rt *rapid.T) {
	tq := query()
	tq.Limit = rapid.IntRange(1, 8).Draw(rt, "limit")
	tq.Lanes = rapid.IntRange(1, 8).Draw(rt, "lanes")
	leases := m.leaseLanes(tq)
	n := 0
	for _, l := range leases {
		n += len(l.Entries)
		if len(leases) > 1 && (l.Isolated || l.Kind != leases[0].Kind || slices.ContainsFunc(l.Entries,
			func(e deliveries.LeasedEntry) bool { return e.Unconfirmed || e.Attempts > 0 })) {
			rt.Fatalf("%+v was leased with other lanes", l)
		}
		m.leased(l)
	}
	if n > tq.Limit || len(leases) > tq.Lanes {
		rt.Fatalf("%d entries of %d lanes, want at most %d of %d", n, len(leases), tq.Limit, tq.Lanes)
	}
}

func (m *model) leased(l *deliveries.Lease) {
	rt := m.rt
	for old := range m.expired {
		if old.ConnectionID == l.ConnectionID && old.Lane == l.Lane {
			for _, e := range old.Entries {
				m.unconfirmed[e.ID] = true
			}
			delete(m.expired, old)
		}
	}
	for _, e := range l.Entries {
		if m.state[e.ID] != "pending" {
			rt.Fatalf("took %s, which is %s", e.ID, m.state[e.ID])
		}
		if first, ok := m.bytes[e.ID]; ok && first != string(e.Body) {
			rt.Fatalf("%s had the bytes %s, has %s", e.ID, first, e.Body)
		}
		m.bytes[e.ID] = string(e.Body)
		if e.Unconfirmed != m.unconfirmed[e.ID] {
			rt.Fatalf("%s is unconfirmed: %v, want %v", e.ID, e.Unconfirmed, m.unconfirmed[e.ID])
		}
	}
	if l.Entries[0].Unconfirmed != l.Entries[len(l.Entries)-1].Unconfirmed {
		rt.Fatal("unconfirmed ones go with others")
	}
	m.leases = append(m.leases, l)
}

func (m *model) finish(rt *rapid.T) {
	if len(m.leases) == 0 {
		return
	}
	var lanes []deliveries.LaneCompletion
	for range rapid.IntRange(1, len(m.leases)).Draw(rt, "leases") {
		i := rapid.IntRange(0, len(m.leases)-1).Draw(rt, "lease")
		l := m.leases[i]
		same := func(o deliveries.LaneCompletion) bool {
			return o.Lease.ConnectionID == l.ConnectionID && o.Lease.Lane == l.Lane
		}
		if slices.ContainsFunc(lanes, same) {
			continue
		}
		m.leases = slices.Delete(m.leases, i, i+1)
		lanes = append(lanes, deliveries.LaneCompletion{Lease: l, Outcomes: drawOutcomes(rt, l)})
		if len(m.leases) == 0 {
			break
		}
	}
	current := make([]bool, len(lanes))
	for i, c := range lanes {
		current[i] = m.current(c.Lease)
	}
	done, err := m.relay.Complete(context.Background(), completion(lanes...))
	if err != nil {
		rt.Fatal(err)
	}
	for i, c := range lanes {
		if slices.Contains(done.Lost, c.Lease) != !current[i] {
			rt.Fatalf("lost %v, though current: %v", done.Lost, current[i])
		}
		if current[i] {
			m.completed(c)
		}
	}
}

func drawOutcomes(rt *rapid.T, l *deliveries.Lease) (outcomes []deliveries.Outcome) {
	for _, e := range l.Entries {
		o := deliveries.Outcome{Seq: e.Seq, Reason: "x", RetryIn: time.Hour}
		o.Status = deliveries.OutcomeStatus(rapid.IntRange(0, 3).Draw(rt, "status")) // 0: untouched
		o.Unconfirmed = o.Status == deliveries.Failed && rapid.Bool().Draw(rt, "unconfirmed")
		o.Isolate = o.Status == deliveries.Failed && rapid.Bool().Draw(rt, "isolate")
		if o.Status != 0 {
			outcomes = append(outcomes, o)
		}
	}
	return outcomes
}

func (m *model) completed(c deliveries.LaneCompletion) {
	l := c.Lease
	delete(m.expired, l) // it expired, but no worker leased the lane before it was completed
	for _, o := range c.Outcomes {
		id := l.Entries[slices.IndexFunc(l.Entries,
			func(e deliveries.LeasedEntry) bool { return e.Seq == o.Seq })].ID
		switch {
		case o.Status == deliveries.Delivered:
			m.state[id] = "delivered"
		case o.Status == deliveries.DeadLettered:
			m.state[id] = "dead"
		case o.Unconfirmed:
			m.unconfirmed[id] = true
		}
		if o.Status != deliveries.Failed {
			delete(m.unconfirmed, id)
		}
	}
}

// current reports whether a lease is still the last of its lane.
func (m *model) current(l *deliveries.Lease) bool {
	return scan[int64](
		m.queue,
		`SELECT fence FROM delivery.lanes WHERE connection_id = $1 AND kind = $2 AND lane = $3`,
		l.ConnectionID,
		int16(l.Kind),
		l.Lane,
	) == l.Fence
}

func (m *model) expireAll(*rapid.T) {
	for _, l := range m.leases {
		if m.current(l) {
			m.expired[l] = true
		}
	}
	m.expire()
}

func (m *model) replay(rt *rapid.T) {
	n := 0
	for id, s := range m.state {
		if s == "dead" && m.bytes[id] != "" {
			n++
		}
	}
	got := 0
	for _, c := range []ident.ConnectionID{"con_0", "con_1"} {
		k, err := m.control.ReplayDead(context.Background(), deliveries.ReplayQuery{ConnectionID: c})
		if err != nil {
			rt.Fatal(err)
		}
		got += k
	}
	if got != n {
		rt.Fatalf("replayed %d, want %d", got, n)
	}
	for id, s := range m.state {
		if s == "dead" {
			m.state[id] = "pending"
		}
	}
}

// check compares the model, the view and the rows.
func (m *model) check(rt *rapid.T) {
	m.recount()
	want := map[string]int64{}
	for _, s := range m.state {
		want[s]++
	}
	v := m.view()
	if v.Total.Pending != want["pending"] || v.Total.DeadLast24h != want["dead"] {
		rt.Fatalf("the view says %+v, the model %v", v.Total, want)
	}
	// What an expired lease was sending is counted when its lane is taken again.
	rows, err := m.pools.admin.Query(
		context.Background(),
		`SELECT e.id FROM delivery.entries e JOIN delivery.lanes l USING (connection_id, kind, lane) WHERE e.seq = ANY (l.unconfirmed)`,
	)
	if err != nil {
		rt.Fatal(err)
	}
	got := map[string]bool{}
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			rt.Fatal(err)
		}
		got[id] = true
	}
	for old := range m.expired {
		for _, e := range old.Entries {
			delete(got, e.ID) // a look at the lane that leased nothing may have counted it already
		}
	}
	unconfirmed := maps.Clone(m.unconfirmed)
	for old := range m.expired {
		for _, e := range old.Entries {
			delete(unconfirmed, e.ID)
		}
	}
	if !maps.Equal(got, unconfirmed) {
		rt.Fatalf(
			"unconfirmed %v, the model %v",
			slices.Collect(maps.Keys(got)),
			slices.Collect(maps.Keys(unconfirmed)),
		)
	}
}
