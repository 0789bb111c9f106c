package deliveries

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
)

// The bounds of a page of the dead (contract, section 3, E6).
const (
	DefaultDeadLimit = 100
	MaxDeadLimit     = 500
)

// DeadQuery asks for a page of dead interactions, newest first.
type DeadQuery struct {
	ConnectionID ident.ConnectionID // "" means all
	Cursor       string             // "" starts at the newest
	Limit        int                // 0 means DefaultDeadLimit
}

// DeadPage is a page of the dead; Cursor is "" on the last one.
type DeadPage struct {
	Dead   []DeadEntry
	Cursor string
}

// DeadEntry is one interaction that died.
type DeadEntry struct {
	SignalID     ident.SignalID
	ConnectionID ident.ConnectionID
	DiedAt       time.Time
	Attempts     int
	Reason       string
}

// ReplayQuery names dead interactions: those of a connection, those of the ids, or those of the ids in a connection.
type ReplayQuery struct {
	ConnectionID ident.ConnectionID
	SignalIDs    []ident.SignalID
}

const selectDead = `
SELECT id, connection_id, died_at, attempts, reason
FROM delivery.dead
WHERE kind = 1 AND (died_at, connection_id, id) < ($1, $2, $3)
ORDER BY died_at DESC, connection_id DESC, id DESC
LIMIT $4`

const selectDeadOf = `
SELECT id, connection_id, died_at, attempts, reason
FROM delivery.dead
WHERE connection_id = $1 AND kind = 1 AND (died_at, id) < ($2, $3)
ORDER BY died_at DESC, id DESC
LIMIT $4`

// Dead reads a page of E6. A cursor that is not one of ours is an invalid_request.
func (s *Store) Dead(ctx context.Context, q DeadQuery) (DeadPage, error) {
	limit := q.Limit
	if limit == 0 {
		limit = DefaultDeadLimit
	}
	if limit < 1 || limit > MaxDeadLimit {
		return DeadPage{}, fault.New(fault.InvalidRequest, "limit must be 1 to 500")
	}
	after, err := parseCursor(q.Cursor)
	if err != nil {
		return DeadPage{}, err
	}
	var rows pgx.Rows
	if q.ConnectionID == "" {
		rows, err = s.pool.Query(ctx, selectDead, after.at(), after.Connection, after.ID, limit+1)
	} else {
		rows, err = s.pool.Query(ctx, selectDeadOf, q.ConnectionID, after.at(), after.ID, limit+1)
	}
	if err != nil {
		return DeadPage{}, fmt.Errorf("read the dead: %w", err)
	}
	dead, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (DeadEntry, error) {
		var d DeadEntry
		err := row.Scan(&d.SignalID, &d.ConnectionID, &d.DiedAt, &d.Attempts, &d.Reason)
		d.DiedAt = d.DiedAt.UTC()
		return d, err
	})
	if err != nil {
		return DeadPage{}, fmt.Errorf("read the dead: %w", err)
	}
	page := DeadPage{Dead: dead}
	if len(dead) > limit {
		page.Dead = dead[:limit]
		page.Cursor = cursorAfter(page.Dead[limit-1])
	}
	return page, nil
}

// cursor is the place after which a page starts: the last entry of the page before.
type cursor struct {
	Micros     int64  `json:"t"`
	Connection string `json:"c"`
	ID         string `json:"i"`
}

// at is the cursor's instant; the empty cursor stands after everything.
func (c cursor) at() any {
	if c.Micros == 0 {
		return "infinity"
	}
	return time.UnixMicro(c.Micros).UTC().Format(time.RFC3339Nano)
}

func cursorAfter(d DeadEntry) string {
	// Marshalling two strings and a number does not fail.
	b, _ := json.Marshal(cursor{d.DiedAt.UnixMicro(), string(d.ConnectionID), string(d.SignalID)})
	return base64.RawURLEncoding.EncodeToString(b)
}

func parseCursor(text string) (cursor, error) {
	var c cursor
	if text == "" {
		return c, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	if err != nil || c.Micros <= 0 || !ident.Valid(ident.Connection, c.Connection) || !ident.Valid(ident.Signal, c.ID) {
		return c, fault.New(fault.InvalidRequest, "cursor is not one that this list gave")
	}
	return c, nil
}

// replay moves rows back: new in the queue's order, with no attempt and no failure behind them.
const replay = `
WITH gone AS (
    DELETE FROM delivery.dead
    WHERE kind = 1 AND ($1 = '' OR connection_id = $1) AND ($2::text[] IS NULL OR id = ANY ($2))
    RETURNING connection_id, kind, id, lane, body, died_at
), back AS (
    INSERT INTO delivery.entries (connection_id, kind, lane, id, body)
    SELECT connection_id, kind, lane, id, body
    FROM gone
    ORDER BY died_at, id
), told AS (
    INSERT INTO delivery.deltas (connection_id, kind, pending, dead, minute, lanes)
    SELECT connection_id, kind, count(*), -count(*), date_trunc('minute', died_at), bit_or(1::smallint << lane::integer)
    FROM gone
    GROUP BY connection_id, kind, date_trunc('minute', died_at)
)
SELECT count(*) FROM gone`

// Replay brings dead interactions back to the queue and returns how many (E6). An id that is not dead is passed over.
func (s *Store) Replay(ctx context.Context, q ReplayQuery) (int, error) {
	if q.ConnectionID == "" && len(q.SignalIDs) == 0 {
		return 0, fault.New(fault.InvalidRequest, "connection_id or signal_ids must be given")
	}
	var ids []string // nil: every one of the connection
	for _, id := range q.SignalIDs {
		ids = append(ids, string(id))
	}
	var n int
	if err := s.pool.QueryRow(ctx, replay, string(q.ConnectionID), ids).Scan(&n); err != nil {
		return 0, fmt.Errorf("replay the dead: %w", err)
	}
	return n, nil
}
