package deliveries

import (
	"context"
	"fmt"
	"time"
)

// The list of dead letters is read beside, and letters that are replayed meanwhile are gone already.
const purgeDead = `
DELETE FROM delivery.dead
WHERE (connection_id, kind, id) IN (
    SELECT connection_id, kind, id
    FROM delivery.dead
    WHERE kind = $1 AND died_at < $2
    ORDER BY died_at
    LIMIT $3)`

// PurgeDead deletes the oldest dead letters of each kind that died before the given instant, up to most of
// each, and returns how many it deleted. They are lost for a replay.
func (s *Store) PurgeDead(ctx context.Context, before time.Time, most int) (deleted int, err error) {
	for _, k := range []Kind{Interaction, Envelope} {
		tag, err := s.pool.Exec(ctx, purgeDead, int16(k), before, most)
		if err != nil {
			return deleted, fmt.Errorf("purge dead letters: %w", err)
		}
		deleted += int(tag.RowsAffected())
	}
	return deleted, nil
}
