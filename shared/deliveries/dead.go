package deliveries

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
)

// The bounds of a page of dead letters.
const (
	DefaultDeadLimit = 100
	MaxDeadLimit     = 500
)

// DeadQuery asks for a page of the dead letters of one kind, newest first.
type DeadQuery struct {
	Kind         Kind               // Interaction when zero
	ConnectionID ident.ConnectionID // "" means all
	Cursor       string             // "" starts at the newest
	Limit        int                // 0 means DefaultDeadLimit
}

// DeadPage is a page of dead letters; Cursor is "" on the last one.
type DeadPage struct {
	Dead   []DeadLetter
	Cursor string
}

// DeadLetter is one delivery that was given up.
type DeadLetter struct {
	ID           string // of the signal or of the observation
	ConnectionID ident.ConnectionID
	DiedAt       time.Time
	Attempts     int
	Reason       string
}

const selectDead = `
SELECT id, connection_id, died_at, attempts, reason
FROM delivery.dead
WHERE kind = $1 AND (died_at, connection_id, id) < ($3, $2, $4)
ORDER BY died_at DESC, connection_id DESC, id DESC
LIMIT $5`

const selectDeadOfConnection = `
SELECT id, connection_id, died_at, attempts, reason
FROM delivery.dead
WHERE kind = $1 AND connection_id = $2 AND (died_at, id) < ($3, $4)
ORDER BY died_at DESC, id DESC
LIMIT $5`

// ListDead reads a page of dead letters. A cursor that no page had fails with fault.InvalidRequest.
func (s *Store) ListDead(ctx context.Context, q DeadQuery) (DeadPage, error) {
	limit := q.Limit
	if limit == 0 {
		limit = DefaultDeadLimit
	}
	if limit < 1 || limit > MaxDeadLimit {
		return DeadPage{}, fault.New(fault.InvalidRequest, "limit must be 1 to 500")
	}
	kind := cmp.Or(q.Kind, Interaction)
	after, err := parseDeadCursor(kind, q.Cursor)
	if err != nil {
		return DeadPage{}, err
	}
	sql, connection := selectDead, ident.ConnectionID(after.Connection)
	if q.ConnectionID != "" {
		sql, connection = selectDeadOfConnection, q.ConnectionID
	}
	rows, err := s.pool.Query(ctx, sql, int16(kind), connection, after.at(), after.ID, limit+1)
	if err != nil {
		return DeadPage{}, fmt.Errorf("read dead letters: %w", err)
	}
	dead, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (DeadLetter, error) {
		var d DeadLetter
		err := row.Scan(&d.ID, &d.ConnectionID, &d.DiedAt, &d.Attempts, &d.Reason)
		d.DiedAt = d.DiedAt.UTC()
		return d, err
	})
	if err != nil {
		return DeadPage{}, fmt.Errorf("read dead letters: %w", err)
	}
	page := DeadPage{Dead: dead}
	if len(dead) > limit {
		page.Dead = dead[:limit]
		page.Cursor = encodeDeadCursor(page.Dead[limit-1])
	}
	return page, nil
}

// deadCursor is the last entry of the page before.
type deadCursor struct {
	Micros     int64  `json:"t"`
	Connection string `json:"c"`
	ID         string `json:"i"`
}

// at is the cursor's instant; the empty cursor comes after every entry.
func (c deadCursor) at() any {
	if c.Micros == 0 {
		return "infinity"
	}
	return time.UnixMicro(c.Micros).UTC().Format(time.RFC3339Nano)
}

func encodeDeadCursor(d DeadLetter) string {
	b, _ := json.Marshal( // cannot fail
		deadCursor{d.DiedAt.UnixMicro(), string(d.ConnectionID), d.ID})
	return base64.RawURLEncoding.EncodeToString(b)
}

func parseDeadCursor(k Kind, text string) (deadCursor, error) {
	var c deadCursor
	if text == "" {
		return c, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	if err != nil || c.Micros <= 0 || !ident.Valid(ident.Connection, c.Connection) ||
		!k.ValidID(c.ID) {
		return c, fault.New(fault.InvalidRequest, "cursor is not one that this list gave")
	}
	return c, nil
}
