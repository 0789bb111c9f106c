package deliveries

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"storefront.internal/shared/ident"
	"storefront.internal/shared/ident/decisionid"
)

const insertEntries = `
INSERT INTO delivery.entries (connection_id, kind, lane, id, body, awaits, awaits_minted, traceparent)
SELECT connection_id, kind, lane, id, body, nullif(awaits, ''), CASE WHEN awaits <> '' THEN minted END, nullif(trace, '')
FROM unnest($1::text[], $2::smallint[], $3::smallint[], $4::text[], $5::bytea[], $6::text[], $7::timestamptz[], $8::text[])
     WITH ORDINALITY AS e (connection_id, kind, lane, id, body, awaits, minted, trace, n)
ORDER BY n`

const insertEnqueued = `
INSERT INTO delivery.deltas (connection_id, kind, pending, lanes)
SELECT * FROM unnest($1::text[], $2::smallint[], $3::integer[], $4::smallint[])`

// Enqueue puts deliveries into the queue, in the caller's transaction and in the order given. It takes no lock: the
// compactor makes the lanes and wakes them after the commit.
func Enqueue(ctx context.Context, tx pgx.Tx, entries []Entry) error {
	if len(entries) == 0 {
		return nil
	}
	c := newColumns(len(entries))
	for i := range entries {
		if err := c.add(&entries[i]); err != nil {
			return err
		}
	}
	conns, kinds, pendings, lanes := c.deltas()
	b := &pgx.Batch{}
	b.Queue(insertEntries, c.conns, c.kinds, c.lanes, c.ids, c.bodies, c.awaits, c.minted, c.traces)
	b.Queue(insertEnqueued, conns, kinds, pendings, lanes)
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("enqueue %d deliveries: %w", len(entries), err)
	}
	return nil
}

// columns are the entries as unnest takes them.
type columns struct {
	conns, ids, awaits []string
	traces             []string
	kinds, lanes       []int16
	bodies             [][]byte
	minted             []time.Time
	changed            map[queueKey]*change
}

type queueKey struct {
	conn ident.ConnectionID
	kind Kind
}

type change struct {
	pending int32
	lanes   int16
}

func newColumns(n int) *columns {
	return &columns{
		conns: make([]string, 0, n), ids: make([]string, 0, n), awaits: make([]string, 0, n), traces: make([]string, 0, n),
		kinds: make([]int16, 0, n), lanes: make([]int16, 0, n), bodies: make([][]byte, 0, n),
		minted: make([]time.Time, 0, n), changed: make(map[queueKey]*change),
	}
}

func (c *columns) add(e *Entry) error {
	if e.Kind != Interaction && e.Kind != Envelope {
		return fmt.Errorf("enqueue: kind %d is none", e.Kind)
	}
	if e.Awaits != "" && e.Kind != Interaction {
		return fmt.Errorf("enqueue: an %s awaits no Decision", e.Kind)
	}
	lane := laneOf(e.LaneKey)
	minted, ok := decisionid.MintedAt(e.Awaits)
	if !ok {
		minted = time.Unix(0, 0) // the instant under which the relay stores a Decision whose id carries none
	}
	c.conns = append(c.conns, string(e.ConnectionID))
	c.ids = append(c.ids, e.ID)
	c.awaits = append(c.awaits, e.Awaits)
	c.traces = append(c.traces, e.Traceparent)
	c.kinds = append(c.kinds, int16(e.Kind))
	c.lanes = append(c.lanes, lane)
	c.bodies = append(c.bodies, e.Body)
	c.minted = append(c.minted, minted.UTC())
	key := queueKey{e.ConnectionID, e.Kind}
	ch := c.changed[key]
	if ch == nil {
		ch = &change{}
		c.changed[key] = ch
	}
	ch.pending++
	ch.lanes |= 1 << lane
	return nil
}

func (c *columns) deltas() (conns []string, kinds []int16, pendings []int32, lanes []int16) {
	keys := make([]queueKey, 0, len(c.changed))
	for k := range c.changed {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b queueKey) int {
		return cmp.Or(cmp.Compare(a.conn, b.conn), cmp.Compare(a.kind, b.kind))
	})
	for _, k := range keys {
		conns = append(conns, string(k.conn))
		kinds = append(kinds, int16(k.kind))
		pendings = append(pendings, c.changed[k].pending)
		lanes = append(lanes, c.changed[k].lanes)
	}
	return conns, kinds, pendings, lanes
}
