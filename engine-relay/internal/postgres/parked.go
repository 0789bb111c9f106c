package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"storefront.internal/engine-relay/internal/sink"
)

const park = `
INSERT INTO relay.parked (topic, topic_partition, record_offset, signal_index, connection_id, signal_id,
    reason, sqlstate, bytes)
VALUES ($1, $2, $3, $4, nullif($5, ''), nullif($6, ''), $7, $8, $9)
ON CONFLICT ON CONSTRAINT parked_once DO NOTHING`

// Park stores the same bytes of the same record once.
func (t *tx) Park(ctx context.Context, parked []sink.Parked) error {
	batch := &pgx.Batch{}
	for i := range parked {
		p := &parked[i]
		batch.Queue(park, p.Topic, p.Partition, p.Offset, p.Index, p.ConnectionID, p.SignalID,
			p.Reason, p.SQLState, append([]byte{}, p.Bytes...)) // a record without a value is not NULL
	}
	if err := t.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("park %d records: %w", len(parked), err)
	}
	return nil
}

const (
	nextReplay = `
SELECT parked_id, topic, topic_partition, record_offset, signal_index, bytes
FROM relay.parked
WHERE replay_requested_at IS NOT NULL AND replayed_at IS NULL
ORDER BY replay_requested_at
LIMIT 1`

	// The digest of the bytes stays, since it is in the key of the row.
	completeReplay = `
UPDATE relay.parked
SET replayed_at = now(), bytes = digest
WHERE parked_id = $1 AND replay_requested_at IS NOT NULL AND replayed_at IS NULL`

	failReplay = `
UPDATE relay.parked
SET replay_requested_at = NULL, replay_failed_at = now(), reason = $2, sqlstate = $3
WHERE parked_id = $1 AND replay_requested_at IS NOT NULL AND replayed_at IS NULL`
)

// NextReplay implements sink.ReplayStore.
func (s *Store) NextReplay(ctx context.Context) (*sink.Replay, error) {
	var r sink.Replay
	err := s.pool.QueryRow(ctx, nextReplay).Scan(&r.ID, &r.Message.Topic, &r.Message.Partition,
		&r.Message.Offset, &r.Index, &r.Message.Value)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the next replay: %w", err)
	}
	return &r, nil
}

// CompleteReplay does nothing when another relay was first.
func (t *tx) CompleteReplay(ctx context.Context, parkedID int64) error {
	if _, err := t.Exec(ctx, completeReplay, parkedID); err != nil {
		return fmt.Errorf("complete the replay of a parked record: %w", err)
	}
	return nil
}

// FailReplay does nothing when another relay was first.
func (t *tx) FailReplay(ctx context.Context, parkedID int64, reason, sqlState string) error {
	if _, err := t.Exec(ctx, failReplay, parkedID, reason, sqlState); err != nil {
		return fmt.Errorf("return a parked record: %w", err)
	}
	return nil
}
