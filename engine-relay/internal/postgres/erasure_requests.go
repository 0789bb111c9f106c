package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"storefront.internal/engine-relay/internal/sink"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/pg"
	"storefront.internal/shared/signal"
)

// Sink transactions share an advisory lock from before they read the erasures until they end. Executing an
// erasure takes the lock alone for a moment, and so waits for all transactions that did not see it.
// selectErasures is a statement of its own, so that its snapshot is younger than the lock.
const (
	shareErasures  = `SELECT pg_advisory_xact_lock_shared($1, $2)`
	lockErasures   = `SELECT pg_advisory_xact_lock($1, $2)`
	selectErasures = `SELECT digest, erased_at FROM relay.erasures WHERE erased_at > $1`
)

// Erasures implements sink.Tx.
func (t *tx) Erasures(ctx context.Context, since time.Time) (sink.Erasures, error) {
	b := &pgx.Batch{}
	b.Queue(shareErasures, pg.LockSpace, pg.LockErasures)
	b.Queue(selectErasures, since)
	results := t.SendBatch(ctx, b)
	defer func() { _ = results.Close() }() // its error is read below
	if _, err := results.Exec(); err != nil {
		return nil, fmt.Errorf("share the erasures' lock: %w", err)
	}
	var erasures sink.Erasures
	rows, err := results.Query()
	if err == nil {
		var digest pgtype.UUID
		var before time.Time
		_, err = pgx.ForEachRow(rows, []any{&digest, &before}, func() error {
			if erasures == nil {
				erasures = sink.Erasures{}
			}
			erasures[digest.Bytes] = before
			return nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("read erasures: %w", err)
	}
	return erasures, nil
}

// requestVisitorErasures reopens an erasure only for a later instant.
const requestVisitorErasures = `
INSERT INTO relay.erasures AS e (connection_id, subject, digest, subject_id, erased_at)
SELECT connection_id, 'visitor', digest, visitor_id, max(before)
FROM unnest($1::text[], $2::uuid[], $3::text[], $4::timestamptz[]) AS v (connection_id, digest, visitor_id,
    before)
GROUP BY connection_id, digest, visitor_id
ORDER BY connection_id, digest
ON CONFLICT (connection_id, subject, digest) DO UPDATE
SET subject_id = excluded.subject_id, erased_at = excluded.erased_at, completed_at = NULL
WHERE e.erased_at < excluded.erased_at`

// RequestErasures implements sink.Tx.
func (t *tx) RequestErasures(ctx context.Context, visitors []sink.VisitorErasure) error {
	return requestErasures(ctx, t.Tx, visitors)
}

func requestErasures(ctx context.Context, tx pgx.Tx, visitors []sink.VisitorErasure) error {
	n := len(visitors)
	if n == 0 {
		return nil
	}
	digest := func(i int) pgtype.UUID {
		return erasureDigest(visitors[i].ConnectionID, signal.VisitorSubject, string(visitors[i].VisitorID))
	}
	_, err := tx.Exec(ctx, requestVisitorErasures,
		pg.Column(n, func(i int) string { return string(visitors[i].ConnectionID) }),
		pg.Column(n, digest),
		pg.Column(n, func(i int) string { return string(visitors[i].VisitorID) }),
		pg.Column(n, func(i int) time.Time { return visitors[i].Before }))
	if err != nil {
		return fmt.Errorf("request the erasure of %d visitors: %w", n, err)
	}
	return nil
}

func erasureDigest(c ident.ConnectionID, s signal.Subject, id string) pgtype.UUID {
	return uuidOf(signal.ErasureDigest(c, s, id))
}
