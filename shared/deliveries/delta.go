package deliveries

import (
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// delta is what a transaction changes of a connection's counts.
type delta struct {
	pending, unconfirmed, dead int
}

const insertDeltas = `
INSERT INTO delivery.deltas (connection_id, kind, pending, unconfirmed, dead, minute)
SELECT d.connection_id, d.kind, d.pending, d.unconfirmed, d.dead,
    CASE WHEN d.dead <> 0 THEN date_trunc('minute', now()) END
FROM unnest($1::text[], $2::smallint[], $3::integer[], $4::integer[], $5::integer[])
    AS d (connection_id, kind, pending, unconfirmed, dead)`

// deltas are the deltas of a transaction, one for each connection and kind.
type deltas map[queueKey]delta

func (all deltas) add(l *Lease, d delta) {
	if d == (delta{}) {
		return
	}
	key := queueKey{l.ConnectionID, l.Kind}
	sum := all[key]
	all[key] = delta{sum.pending + d.pending, sum.unconfirmed + d.unconfirmed, sum.dead + d.dead}
}

func (all deltas) queue(b *pgx.Batch) {
	if len(all) == 0 {
		return
	}
	keys := slices.Collect(maps.Keys(all))
	b.Queue(insertDeltas,
		column(keys, func(k queueKey) string { return string(k.conn) }),
		column(keys, func(k queueKey) int16 { return int16(k.kind) }),
		column(keys, func(k queueKey) int { return all[k].pending }),
		column(keys, func(k queueKey) int { return all[k].unconfirmed }),
		column(keys, func(k queueKey) int { return all[k].dead }))
}

// micros returns a duration in PostgreSQL's resolution.
func micros(d time.Duration) time.Duration { return max(0, d.Truncate(time.Microsecond)) }
