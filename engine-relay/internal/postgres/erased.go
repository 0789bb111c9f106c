package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"storefront.internal/engine-relay/internal/record"
	"storefront.internal/shared/signal"
)

// Sinks share this lock from before they read the erasures until they end; who executes an erasure takes it alone for a
// moment, and so outlasts every sink that did not see it. The second statement has a snapshot that is younger than the lock.
const (
	shareErasures  = `SELECT pg_advisory_xact_lock_shared(7233, 3)`
	barErasures    = `SELECT pg_advisory_xact_lock(7233, 3)`
	selectErasures = `SELECT digest, erased_at FROM relay.erasures WHERE erased_at > $1`
)

// Erased implements record.Tx.
func (t *tx) Erased(ctx context.Context, since time.Time) (record.Erased, error) {
	b := &pgx.Batch{}
	b.Queue(shareErasures)
	b.Queue(selectErasures, since)
	results := t.SendBatch(ctx, b)
	defer func() { _ = results.Close() }() // its error is one that was read below
	if _, err := results.Exec(); err != nil {
		return nil, fmt.Errorf("share the erasures: %w", err)
	}
	rows, err := results.Query()
	if err != nil {
		return nil, fmt.Errorf("read erasures: %w", err)
	}
	var erased record.Erased
	var digest pgtype.UUID
	var before time.Time
	if _, err := pgx.ForEachRow(rows, []any{&digest, &before}, func() error {
		if erased == nil {
			erased = record.Erased{}
		}
		erased[digest.Bytes] = before
		return nil
	}); err != nil {
		return nil, fmt.Errorf("read erasures: %w", err)
	}
	return erased, nil
}

// forgetVisitors opens an erasure anew only when it is to reach further than before.
const forgetVisitors = `
INSERT INTO relay.erasures AS e (connection_id, subject, digest, subject_id, erased_at)
SELECT connection_id, 'visitor', digest, visitor_id, max(before)
FROM unnest($1::text[], $2::uuid[], $3::text[], $4::timestamptz[]) AS v (connection_id, digest, visitor_id, before)
GROUP BY connection_id, digest, visitor_id
ORDER BY connection_id, digest
ON CONFLICT (connection_id, subject, digest) DO UPDATE
SET subject_id = excluded.subject_id, erased_at = excluded.erased_at, completed_at = NULL
WHERE e.erased_at < excluded.erased_at`

// Forget implements record.Tx.
func (t *tx) Forget(ctx context.Context, visitors []record.Visitor) error {
	return forget(ctx, t.Tx, visitors)
}

func forget(ctx context.Context, tx pgx.Tx, visitors []record.Visitor) error {
	n := len(visitors)
	if n == 0 {
		return nil
	}
	connections, ids := make([]string, n), make([]string, n)
	digests, before := make([]pgtype.UUID, n), make([]time.Time, n)
	for i, v := range visitors {
		connections[i], ids[i], before[i] = string(v.ConnectionID), string(v.VisitorID), v.Before
		digests[i] = pgtype.UUID{Bytes: signal.ErasureDigest(v.ConnectionID, signal.VisitorSubject, string(v.VisitorID)), Valid: true}
	}
	if _, err := tx.Exec(ctx, forgetVisitors, connections, digests, ids, before); err != nil {
		return fmt.Errorf("ask to forget %d visitors: %w", n, err)
	}
	return nil
}
