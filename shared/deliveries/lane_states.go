package deliveries

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// LaneStates returns the states of a lane that holds deliveries, in the order in which they are tested.
func LaneStates() []string { return []string{"leased", "retry", "resting", "ready"} }

const selectLaneStates = `
SELECT state, count(*)
FROM (
    SELECT CASE
        WHEN leased_until > now() THEN 'leased'
        WHEN lane >= 8 THEN 'retry'
        WHEN not_before > now() THEN 'resting'
        ELSE 'ready'
    END AS state
    FROM delivery.lanes
    WHERE kind = $1 AND ready
) lanes
GROUP BY state`

// CountLanes counts the lanes that hold deliveries, by what they wait for. It takes no locks.
func (s *Store) CountLanes(ctx context.Context, k Kind) (map[string]int64, error) {
	counts := map[string]int64{}
	rows, err := s.pool.Query(ctx, selectLaneStates, int16(k))
	if err != nil {
		return nil, fmt.Errorf("count the lanes of %ss: %w", k, err)
	}
	var state string
	var n int64
	_, err = pgx.ForEachRow(rows, []any{&state, &n}, func() error {
		counts[state] = n
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("count the lanes of %ss: %w", k, err)
	}
	return counts, nil
}
