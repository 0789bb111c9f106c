package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"storefront.internal/shared/pg"
)

// EnsurePartitions makes the coming days and returns how many whole days ahead every table has.
func (s *Store) EnsurePartitions(ctx context.Context, days int) (int, error) {
	var ahead int
	if err := s.pool.QueryRow(ctx, `SELECT relay.ensure_partitions($1)`, days).Scan(&ahead); err != nil {
		return 0, fmt.Errorf("ensure partitions: %w", err)
	}
	return ahead, nil
}

// DropPartitions ends the days before the given one and returns how many tables went.
func (s *Store) DropPartitions(ctx context.Context, before time.Time) (int, error) {
	var dropped int
	if err := s.pool.QueryRow(ctx, `SELECT relay.drop_partitions($1::date)`, before.UTC().Format(time.DateOnly)).Scan(&dropped); err != nil {
		return 0, fmt.Errorf("drop partitions: %w", err)
	}
	return dropped, nil
}

const strays = `
SELECT (SELECT count(*) FROM (SELECT stored_at FROM relay.signals_default LIMIT 1000) AS s)
     + (SELECT count(*) FROM (SELECT stored_at FROM relay.audit_default LIMIT 1000) AS a)`

// Strays counts rows that found no day's partition, up to 1,000 of each table.
func (s *Store) Strays(ctx context.Context) (int, error) {
	var n int
	if err := s.pool.QueryRow(ctx, strays).Scan(&n); err != nil {
		return 0, fmt.Errorf("count strays: %w", err)
	}
	return n, nil
}

// Parked counts what lies parked, up to 10,000.
func (s *Store) Parked(ctx context.Context) (int, error) {
	var n int
	if err := s.pool.QueryRow(ctx, `SELECT count(*) FROM (SELECT parked_id FROM relay.parked LIMIT 10000) AS p`).Scan(&n); err != nil {
		return 0, fmt.Errorf("count parked: %w", err)
	}
	return n, nil
}

// markMissed marks signals whose Decision was being stored while they were: neither transaction saw the other.
const markMissed = `
UPDATE relay.signals AS s
SET foreign_item = NOT EXISTS (SELECT FROM json_array_elements(d.items) AS i WHERE i ->> 'item_id' = s.item_id)
FROM relay.decisions AS d
WHERE d.connection_id = s.connection_id AND d.decision_id = s.decision_id AND s.foreign_item IS NULL
    AND s.stored_at > now() - interval '10 minutes'`

// MarkMissed marks what SaveDecisions could not see, and returns how many signals that were. One relay does it at a
// time; it and the sinks never want the same rows, as it sees committed Decisions and they mark for their own.
func (s *Store) MarkMissed(ctx context.Context) (int, error) {
	marked := 0
	err := pg.InTx(ctx, s.pool, func(t pgx.Tx) error {
		var mine bool
		if err := t.QueryRow(ctx, `SELECT pg_try_advisory_xact_lock(7233, 2)`).Scan(&mine); err != nil || !mine {
			return err
		}
		tag, err := t.Exec(ctx, markMissed)
		marked = int(tag.RowsAffected())
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("mark missed signals: %w", err)
	}
	return marked, nil
}
