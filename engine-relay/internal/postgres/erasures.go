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

// Erasures implements erase.Store.
type Erasures struct{ pool *pgxpool.Pool }

// NewErasures returns an Erasures.
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
    WHERE connection_id = (SELECT connection_id FROM first) AND completed_at IS NULL
        AND claimed_until <= now()
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
func (s *Erasures) Claim(ctx context.Context, by string, ttl time.Duration, limit int) (*erase.Claim, error) {
	var c *erase.Claim
	rows, err := s.pool.Query(ctx, claimErasures, by, ttl, limit)
	if err == nil {
		var connection ident.ConnectionID
		var subject signal.Subject
		var one erase.Subject
		_, err = pgx.ForEachRow(rows, []any{&connection, &subject, &one.ID, &one.Before}, func() error {
			if c == nil {
				c = &erase.Claim{By: by, ConnectionID: connection}
			}
			switch subject {
			case signal.ConnectionSubject:
				c.WholeConnection = one.Before
			case signal.OrderSubject:
				c.Orders = append(c.Orders, one)
			default:
				c.Visitors = append(c.Visitors, one)
			}
			return nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("claim erasures: %w", err)
	}
	return c, nil
}

const renewErasures = `
UPDATE relay.erasures
SET claimed_until = now() + $3::interval
WHERE connection_id = $1 AND claimed_by = $2 AND completed_at IS NULL AND claimed_until > now()`

// Renew implements erase.Store.
func (s *Erasures) Renew(ctx context.Context, c *erase.Claim, ttl time.Duration) (held bool, err error) {
	tag, err := s.pool.Exec(ctx, renewErasures, c.ConnectionID, c.By, ttl)
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
func (s *Erasures) Release(ctx context.Context, c *erase.Claim) error {
	if _, err := s.pool.Exec(ctx, releaseErasures, c.ConnectionID, c.By); err != nil {
		return fmt.Errorf("release the claim of erasures: %w", err)
	}
	return nil
}

// waitLimits bound how long other sinks queue behind the one that waits for the lock. The server ends a
// transaction that hangs before that.
const waitLimits = `SET LOCAL lock_timeout = '20s'; SET LOCAL statement_timeout = '25s'`

// WaitForRunningSinks implements erase.Store.
func (s *Erasures) WaitForRunningSinks(ctx context.Context) error {
	err := pg.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, waitLimits); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, lockErasures, pg.LockSpace, pg.LockErasures)
		return err
	})
	if err != nil {
		return fmt.Errorf("wait for running sinks: %w", err)
	}
	return nil
}

// completeErasures ends requests whose instant is the claimed one, and removes the subject's id.
const completeErasures = `
UPDATE relay.erasures AS e
SET completed_at = now(), subject_id = NULL, claimed_by = NULL, claimed_until = '-infinity'
FROM unnest($2::text[], $3::uuid[], $4::timestamptz[]) AS d (subject, digest, erased_at)
WHERE e.connection_id = $1 AND e.subject = d.subject AND e.digest = d.digest AND e.erased_at = d.erased_at
    AND e.completed_at IS NULL`

// Complete implements erase.Store.
func (s *Erasures) Complete(ctx context.Context, c *erase.Claim) (completed int, err error) {
	var subjects []string
	var digests []pgtype.UUID
	var before []time.Time
	add := func(s signal.Subject, id string, at time.Time) {
		subjects, before = append(subjects, string(s)), append(before, at)
		digests = append(digests, erasureDigest(c.ConnectionID, s, id))
	}
	if !c.WholeConnection.IsZero() {
		add(signal.ConnectionSubject, "", c.WholeConnection)
	}
	for _, v := range c.Visitors {
		add(signal.VisitorSubject, v.ID, v.Before)
	}
	for _, o := range c.Orders {
		add(signal.OrderSubject, o.ID, o.Before)
	}
	err = pg.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, completeErasures, c.ConnectionID, subjects, digests, before)
		if err != nil {
			return err
		}
		completed = int(tag.RowsAffected())
		_, err = tx.Exec(ctx, releaseErasures, c.ConnectionID, c.By)
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
