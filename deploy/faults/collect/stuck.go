package collect

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Stuck is work that waits for an operator, a client or a process.
type Stuck struct{ What, Connection, ID, Detail string }

// selectStuck selects all that waits, except for data requests, which an operator answers to the merchant,
// and for periodic jobs.
const selectStuck = `
SELECT 'an erasure is not completed', connection_id, subject, '' FROM relay.erasures
	WHERE completed_at IS NULL
UNION ALL SELECT 'a redaction is not completed', connection_id, request_id, kind FROM control.privacy_requests
	WHERE completed_at IS NULL AND kind <> 'data_request'
UNION ALL SELECT 'a parked record is neither replayed nor dropped', coalesce(connection_id, ''),
	coalesce(signal_id, parked_id::text), reason || ' ' || sqlstate FROM relay.parked
	WHERE replayed_at IS NULL AND dropped_at IS NULL
UNION ALL SELECT 'an observation is still quarantined', connection_id, observation_id,
	entity || ' ' || external_id || ': ' || coalesce(reason, '')
	FROM control.observations WHERE state = 'quarantined'
UNION ALL SELECT 'a dead letter is left', connection_id, id,
	CASE kind WHEN 1 THEN 'interaction ' ELSE 'envelope ' END || coalesce(reason, '') FROM delivery.dead
UNION ALL SELECT 'a job was given up', '', kind, coalesce(errors[cardinality(errors)]->>'error', '')
	FROM control.river_job WHERE state = 'discarded' AND kind IN ('key_push', 'item_push', 'item_recompose',
		'entity_refresh', 'shop_check', 'bootstrap_load', 'privacy_request', 'installation_saga')`

func (c *collector) stuck(ctx context.Context, tx pgx.Tx) error {
	var s Stuck
	return forEachRow(ctx, tx, selectStuck, []any{&s.What, &s.Connection, &s.ID, &s.Detail}, func() error {
		c.state.Stuck = append(c.state.Stuck, s)
		return nil
	})
}
