package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"storefront.internal/engine-relay/internal/erase"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/pg"
	"storefront.internal/shared/signal"
)

// Erasures are the requests to forget shoppers, and what they are about.
type Erasures struct{ pool *pgxpool.Pool }

// NewErasures returns Erasures.
func NewErasures(pool *pgxpool.Pool) *Erasures { return &Erasures{pool: pool} }

const claimErasures = `
WITH first AS (
    SELECT connection_id
    FROM relay.erasures
    WHERE completed_at IS NULL AND claimed_until <= now()
    ORDER BY erased_at
    LIMIT 1
), due AS (
    SELECT connection_id, subject, digest
    FROM relay.erasures
    WHERE connection_id = (SELECT connection_id FROM first) AND completed_at IS NULL AND claimed_until <= now()
    ORDER BY erased_at
    LIMIT $3
    FOR UPDATE SKIP LOCKED
)
UPDATE relay.erasures AS e
SET claimed_by = $1, claimed_until = now() + $2::interval
FROM due AS d
WHERE e.connection_id = d.connection_id AND e.subject = d.subject AND e.digest = d.digest
RETURNING e.connection_id, e.subject, e.subject_id, e.erased_at`

// Claim implements erase.Store.
func (s *Erasures) Claim(ctx context.Context, by string, life time.Duration, most int) (*erase.Work, error) {
	rows, err := s.pool.Query(ctx, claimErasures, by, life, most)
	if err != nil {
		return nil, fmt.Errorf("claim erasures: %w", err)
	}
	var w *erase.Work
	var connection ident.ConnectionID
	var subject signal.Subject
	var one erase.Subject
	if _, err := pgx.ForEachRow(rows, []any{&connection, &subject, &one.ID, &one.Before}, func() error {
		if w == nil {
			w = &erase.Work{By: by, ConnectionID: connection}
		}
		switch subject {
		case signal.ConnectionSubject:
			w.Everybody = one.Before
		case signal.OrderSubject:
			w.Orders = append(w.Orders, one)
		default:
			w.Visitors = append(w.Visitors, one)
		}
		return nil
	}); err != nil {
		return nil, fmt.Errorf("claim erasures: %w", err)
	}
	return w, nil
}

const renewErasures = `
UPDATE relay.erasures
SET claimed_until = now() + $3::interval
WHERE connection_id = $1 AND claimed_by = $2 AND completed_at IS NULL AND claimed_until > now()`

// Renew implements erase.Store.
func (s *Erasures) Renew(ctx context.Context, w *erase.Work, life time.Duration) (mine bool, err error) {
	tag, err := s.pool.Exec(ctx, renewErasures, w.ConnectionID, w.By, life)
	if err != nil {
		return false, fmt.Errorf("renew the claim of erasures: %w", err)
	}
	return tag.RowsAffected() > 0, nil
}

const releaseErasures = `
UPDATE relay.erasures
SET claimed_by = NULL, claimed_until = '-infinity'
WHERE connection_id = $1 AND claimed_by = $2 AND completed_at IS NULL`

// Release implements erase.Store.
func (s *Erasures) Release(ctx context.Context, w *erase.Work) error {
	if _, err := s.pool.Exec(ctx, releaseErasures, w.ConnectionID, w.By); err != nil {
		return fmt.Errorf("release the claim of erasures: %w", err)
	}
	return nil
}

// outlastWait bounds how long sinks queue behind the one who waits for the others: one that stands still is ended by the
// server before.
const outlastWait = `SET LOCAL lock_timeout = '20s'; SET LOCAL statement_timeout = '25s'`

// Outlast implements erase.Store.
func (s *Erasures) Outlast(ctx context.Context) error {
	err := pg.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, outlastWait); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, barErasures)
		return err
	})
	if err != nil {
		return fmt.Errorf("outlast the sinks: %w", err)
	}
	return nil
}

// completeErasures ends what was not asked anew since it was claimed. The name goes.
const completeErasures = `
UPDATE relay.erasures AS e
SET completed_at = now(), subject_id = NULL, claimed_by = NULL, claimed_until = '-infinity'
FROM unnest($2::text[], $3::uuid[], $4::timestamptz[]) AS d (subject, digest, erased_at)
WHERE e.connection_id = $1 AND e.subject = d.subject AND e.digest = d.digest AND e.erased_at = d.erased_at
    AND e.completed_at IS NULL`

// Complete implements erase.Store.
func (s *Erasures) Complete(ctx context.Context, w *erase.Work) (completed int, err error) {
	var subjects []string
	var digests []pgtype.UUID
	var before []time.Time
	add := func(s signal.Subject, id string, at time.Time) {
		subjects, before = append(subjects, string(s)), append(before, at)
		digests = append(digests, pgtype.UUID{Bytes: signal.ErasureDigest(w.ConnectionID, s, id), Valid: true})
	}
	if !w.Everybody.IsZero() {
		add(signal.ConnectionSubject, "", w.Everybody)
	}
	for _, v := range w.Visitors {
		add(signal.VisitorSubject, v.ID, v.Before)
	}
	for _, o := range w.Orders {
		add(signal.OrderSubject, o.ID, o.Before)
	}
	err = pg.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, completeErasures, w.ConnectionID, subjects, digests, before)
		if err != nil {
			return err
		}
		completed = int(tag.RowsAffected())
		_, err = tx.Exec(ctx, releaseErasures, w.ConnectionID, w.By)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("complete erasures: %w", err)
	}
	return completed, nil
}

const pendingErasures = `
SELECT count(*), coalesce(extract(epoch FROM now() - min(erased_at)), 0)::float8
FROM relay.erasures
WHERE completed_at IS NULL`

// Pending implements erase.Store.
func (s *Erasures) Pending(ctx context.Context) (n int, oldest time.Duration, err error) {
	var seconds float64
	if err := s.pool.QueryRow(ctx, pendingErasures).Scan(&n, &seconds); err != nil {
		return 0, 0, fmt.Errorf("count erasures: %w", err)
	}
	return n, time.Duration(max(seconds, 0) * float64(time.Second)), nil
}
