package deliveries

import (
	"time"

	"github.com/jackc/pgx/v5"
)

// delta is what a transaction changes of a connection's counts.
type delta struct {
	pending, unconfirmed, dead int
}

const insertDelta = `
INSERT INTO delivery.deltas (connection_id, kind, pending, unconfirmed, dead, minute)
VALUES ($1, $2, $3, $4, $5, CASE WHEN $5 <> 0 THEN date_trunc('minute', now()) END)`

func queueDelta(b *pgx.Batch, l *Lease, d delta) {
	if d != (delta{}) {
		b.Queue(insertDelta, l.ConnectionID, int16(l.Kind), d.pending, d.unconfirmed, d.dead)
	}
}

// micros returns a duration in PostgreSQL's resolution.
func micros(d time.Duration) time.Duration { return max(0, d.Truncate(time.Microsecond)) }
