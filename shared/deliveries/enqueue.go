package deliveries

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"storefront.internal/shared/ident"
	"storefront.internal/shared/ident/decisionid"
	"storefront.internal/shared/pg"
)

const insertEntries = `
INSERT INTO delivery.entries (connection_id, kind, lane, id, body, awaits, awaits_minted, traceparent)
SELECT connection_id, kind, lane, id, body, nullif(awaits, ''), 
    CASE WHEN awaits <> '' THEN minted END, nullif(trace, '')
FROM unnest($1::text[], $2::smallint[], $3::smallint[], $4::text[], $5::bytea[], $6::text[],
    $7::timestamptz[],
     $8::text[]) WITH ORDINALITY AS e (connection_id, kind, lane, id, body, awaits, minted, trace, n)
ORDER BY n`

const insertEnqueued = `
INSERT INTO delivery.deltas (connection_id, kind, pending, lanes)
SELECT * FROM unnest($1::text[], $2::smallint[], $3::integer[], $4::smallint[])`

// Enqueue puts deliveries into the queue, in the caller's transaction and in the order given. It takes no
// lock: Compact creates the lanes and wakes them after the commit.
func Enqueue(ctx context.Context, tx pgx.Tx, entries []Entry) error {
	n := len(entries)
	if n == 0 {
		return nil
	}
	lanes, changes, err := changesOf(entries)
	if err != nil {
		return err
	}
	keys := slices.SortedFunc(maps.Keys(changes), func(a, b queueKey) int {
		return cmp.Or(cmp.Compare(a.conn, b.conn), cmp.Compare(a.kind, b.kind))
	})
	b := &pgx.Batch{}
	b.Queue(insertEntries,
		pg.Column(n, func(i int) string { return string(entries[i].ConnectionID) }),
		pg.Column(n, func(i int) int16 { return int16(entries[i].Kind) }),
		lanes,
		pg.Column(n, func(i int) string { return entries[i].ID }),
		pg.Column(n, func(i int) []byte { return entries[i].Body }),
		pg.Column(n, func(i int) string { return entries[i].Awaits }),
		pg.Column(n, func(i int) time.Time { return mintedAt(entries[i].Awaits) }),
		pg.Column(n, func(i int) string { return entries[i].Traceparent }))
	b.Queue(insertEnqueued,
		pg.Column(len(keys), func(i int) string { return string(keys[i].conn) }),
		pg.Column(len(keys), func(i int) int16 { return int16(keys[i].kind) }),
		pg.Column(len(keys), func(i int) int32 { return changes[keys[i]].pending }),
		pg.Column(len(keys), func(i int) int16 { return changes[keys[i]].lanes }))
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("enqueue %d deliveries: %w", n, err)
	}
	return nil
}

type queueKey struct {
	conn ident.ConnectionID
	kind Kind
}

// queueChange is what entries add to a queue: how many there are, and the bits of the lanes that they fill.
type queueChange struct {
	pending int32
	lanes   int16
}

func changesOf(entries []Entry) (lanes []int16, changes map[queueKey]queueChange, err error) {
	lanes, changes = make([]int16, len(entries)), make(map[queueKey]queueChange)
	for i := range entries {
		e := &entries[i]
		if e.Kind != Interaction && e.Kind != Envelope {
			return nil, nil, fmt.Errorf("enqueue: unknown kind %d", e.Kind)
		}
		if e.Awaits != "" && e.Kind != Interaction {
			return nil, nil, fmt.Errorf("enqueue: an %s cannot await a Decision", e.Kind)
		}
		lanes[i] = laneOf(e.LaneKey)
		change := changes[queueKey{e.ConnectionID, e.Kind}]
		change.pending++
		change.lanes |= 1 << lanes[i]
		changes[queueKey{e.ConnectionID, e.Kind}] = change
	}
	return lanes, changes, nil
}

// mintedAt is the partition key of relay.decisions: the instant in the Decision's id, the epoch when it has
// none.
func mintedAt(decision string) time.Time {
	at, ok := decisionid.MintedAt(decision)
	if !ok {
		at = time.Unix(0, 0)
	}
	return at.UTC()
}
