package stats

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Sizes are how much the database holds.
type Sizes struct {
	Database int64            // bytes
	Tables   map[string]Table // by schema and name; a partitioned table counts with its partitions
	// NextXID is the next id of a transaction. No row that a transaction of OldestXID or a later one deleted
	// can be removed, because a snapshot that is still in use may need it.
	NextXID, OldestXID int64
}

// Table is the size of a table, by PostgreSQL's statistics but for the bytes.
type Table struct{ Bytes, Rows, DeadRows int64 }

// sizesEvery is the time between two readings, and bounds one reading.
const sizesEvery = time.Minute

// sizes are the metrics of Sizes.
type sizes struct {
	database, tableBytes, tableRows, tableDead, snapshot *prometheus.GaugeVec
	all                                                  gauges
	horizon                                              horizon
}

func newSizes(r prometheus.Registerer) *sizes {
	s := &sizes{all: gauges{registerer: r, prefix: "storefront_postgres_"}}
	vec := s.all.add
	s.database = vec("database_bytes", "Size of the database.")
	s.tableBytes = vec("table_bytes",
		"Size of a table with its indexes, TOAST and partitions.", "table")
	s.tableRows = vec("table_rows", "Live rows of a table, as PostgreSQL's statistics estimate them.",
		"table")
	s.tableDead = vec("table_dead_rows",
		"Deleted and replaced rows of a table that VACUUM has not removed, by the same statistics.",
		"table")
	s.snapshot = vec("oldest_snapshot_seconds",
		"For how long VACUUM cannot remove rows, because a transaction, a prepared one, or a replication "+
			"slot still needs a snapshot of that time. Counted from the start of the process at most.")
	return s
}

// collectSizes reads the sizes once.
func (c *Collector) collectSizes(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, sizesEvery)
	defer cancel()
	f, err := c.cfg.Store.Sizes(ctx)
	c.sizes.all.reset()
	if err != nil {
		if ctx.Err() == nil {
			c.cfg.Logger.Warn("sizes of tables cannot be read", "error", err.Error())
		}
		return
	}
	s := c.sizes
	s.database.WithLabelValues().Set(float64(f.Database))
	for name, t := range f.Tables {
		s.tableBytes.WithLabelValues(name).Set(float64(t.Bytes))
		s.tableRows.WithLabelValues(name).Set(float64(t.Rows))
		s.tableDead.WithLabelValues(name).Set(float64(t.DeadRows))
	}
	s.snapshot.WithLabelValues().Set(s.horizon.age(time.Now(), f.NextXID, f.OldestXID).Seconds())
}

// horizon measures how old the oldest snapshot is. A role without special rights does not see when the
// transactions of others began, but sees their ids; so horizon notes which id was the next one at which time.
type horizon struct{ notes []note }

type note struct {
	at   time.Time
	next int64
}

// mostNotes are those of a week.
const mostNotes = 7 * 24 * 60

// age notes that next is the next id now, and returns the time since oldest was the next one. Ids that were
// given before the first note are as old as that.
func (h *horizon) age(now time.Time, next, oldest int64) time.Duration {
	h.notes = append(h.notes, note{now, next})
	for len(h.notes) > 1 && h.notes[1].next <= oldest {
		h.notes = h.notes[1:]
	}
	if len(h.notes) > mostNotes { // keep the first one: it has the age
		h.notes = append(h.notes[:1:1], h.notes[2:]...)
	}
	return now.Sub(h.notes[0].at)
}
