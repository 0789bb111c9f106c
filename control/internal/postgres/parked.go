package postgres

import (
	"cmp"
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"storefront.internal/control/internal/parked"
	"storefront.internal/shared/fault"
)

// Parked is the relay's parked records as operators see and decide about them. A record that was replayed or
// dropped keeps its row and loses its bytes.
type Parked struct{ pool *pgxpool.Pool }

// NewParked returns the store of parked records.
func NewParked(pool *pgxpool.Pool) *Parked { return &Parked{pool: pool} }

const (
	parkedColumns = `
SELECT parked_id, topic, topic_partition, record_offset, parked_at, reason, sqlstate,
    coalesce(connection_id, ''), coalesce(signal_id, ''), replay_requested_at, replay_failed_at, replayed_at`

	listParked = parkedColumns + `, ''::bytea
FROM relay.parked
WHERE replayed_at IS NULL AND dropped_at IS NULL AND parked_id > $1 AND ($2 = '' OR topic = $2)
ORDER BY parked_id
LIMIT $3`

	showParked = parkedColumns + `, CASE WHEN replayed_at IS NULL THEN bytes ELSE '' END
FROM relay.parked
WHERE parked_id = $1 AND dropped_at IS NULL`

	requestReplay = `
UPDATE relay.parked
SET replay_requested_at = now()
WHERE parked_id = $1 AND dropped_at IS NULL AND replay_requested_at IS NULL`

	dropParked = `
UPDATE relay.parked
SET dropped_at = now(), drop_reason = $2, bytes = digest
WHERE parked_id = $1 AND dropped_at IS NULL AND replay_requested_at IS NULL`
)

// List reads a page of the records that wait for a decision or for their replay.
func (p *Parked) List(ctx context.Context, q parked.Query) (parked.Page, error) {
	limit := cmp.Or(q.Limit, parked.DefaultLimit)
	rows, err := p.pool.Query(ctx, listParked, q.After, q.Topic, limit+1)
	if err != nil {
		return parked.Page{}, Translate("list parked records", err)
	}
	all, err := pgx.CollectRows(rows, scanParked)
	if err != nil {
		return parked.Page{}, Translate("list parked records", err)
	}
	page := parked.Page{Records: all}
	if len(all) > limit {
		page.Records, page.Next = all[:limit], all[limit-1].ID
	}
	return page, nil
}

// Show reads one record with its bytes. A dropped record is not found.
func (p *Parked) Show(ctx context.Context, id int64) (parked.Record, error) {
	rows, err := p.pool.Query(ctx, showParked, id)
	if err != nil {
		return parked.Record{}, Translate("show parked record", err)
	}
	r, err := pgx.CollectExactlyOneRow(rows, scanParked)
	if errors.Is(err, pgx.ErrNoRows) {
		return r, fault.New(fault.NotFound, "There is no such parked record.")
	}
	return r, Translate("show parked record", err)
}

func scanParked(row pgx.CollectableRow) (r parked.Record, err error) {
	var requested, failed, replayed pgtype.Timestamptz
	err = row.Scan(&r.ID, &r.Topic, &r.Partition, &r.Offset, &r.ParkedAt, &r.Reason, &r.SQLState,
		&r.ConnectionID, &r.SignalID, &requested, &failed, &replayed, &r.Bytes)
	r.ReplayRequestedAt, r.ReplayFailedAt, r.ReplayedAt = requested.Time, failed.Time, replayed.Time
	return r, err
}

// Replay asks the relays to store a record.
func (p *Parked) Replay(ctx context.Context, id int64) error {
	return p.decide(ctx, "replay parked record", requestReplay, id)
}

// Drop gives a record up.
func (p *Parked) Drop(ctx context.Context, id int64, reason string) error {
	return p.decide(ctx, "drop parked record", dropParked, id, reason)
}

// decide executes a statement that changes nothing when the record is gone or has its replay.
func (p *Parked) decide(ctx context.Context, what, sql string, id int64, args ...any) error {
	tag, err := p.pool.Exec(ctx, sql, append([]any{id}, args...)...)
	if err != nil || tag.RowsAffected() > 0 {
		return Translate(what, err)
	}
	if _, err := p.Show(ctx, id); err != nil {
		return err
	}
	return fault.New(fault.AlreadyReplayed, "The replay of the record was requested before.")
}
