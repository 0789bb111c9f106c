package deliveries

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"storefront.internal/shared/pg"
)

const selectBlock = `
SELECT coalesce(probe_at <= now(), false)
FROM delivery.blocks
WHERE credential_digest = $1 AND blocked_at IS NOT NULL`

// scanBlock reports whether a probe is allowed; without a row the credential is not refused.
func scanBlock(row pgx.Row) (probe bool, err error) {
	switch err = row.Scan(&probe); {
	case errors.Is(err, pgx.ErrNoRows):
		return false, nil
	case err != nil:
		return false, err
	case !probe:
		return false, ErrBlocked
	}
	return true, nil
}

// claimProbe makes this lease the only one that may probe, until it expires.
func claimProbe(ctx context.Context, tx pgx.Tx, q LeaseQuery) error {
	tag, err := tx.Exec(ctx, `
UPDATE delivery.blocks SET probe_at = now() + $2::interval
WHERE credential_digest = $1 AND probe_at <= now()`,
		q.Credential[:], micros(q.TTL))
	if err == nil && tag.RowsAffected() == 0 {
		err = ErrBlocked
	}
	return err
}

// updateDeadLetterClock pauses the clock that DeadAfter is measured by while the worker is not running.
const updateDeadLetterClock = `
UPDATE delivery.clock AS c
SET held = c.held + CASE WHEN w.state = 'running' THEN greatest(now() - c.held_since, '0') ELSE '0' END,
    held_since = CASE WHEN w.state = 'running' THEN NULL ELSE now() END
FROM delivery.worker AS w
WHERE (w.state = 'running') = (c.held_since IS NOT NULL)`

const block = `
INSERT INTO delivery.blocks AS b (credential_digest, blocked_at)
VALUES ($1, now())
ON CONFLICT (credential_digest) DO UPDATE
SET blocked_at = coalesce(b.blocked_at, now()), probe_at = CASE WHEN $3 THEN NULL ELSE b.probe_at END
WHERE $3 OR b.cleared_at IS NULL OR b.cleared_at < $2`

// Block records that the engine refused a credential (401). From then on no lane is leased with it; other
// credentials are not affected. A credential that is refused already keeps the time of its first refusal.
// Only the refusal of the probe itself withdraws the permission to probe; a late refusal under an older lease
// does not.
func (s *Store) Block(ctx context.Context, r Refusal) error {
	return s.exec(ctx, "block a credential", block, r.Credential[:], r.LeasedAt, r.Probe)
}

// Unblock records that the engine accepted the credential of a probe.
func (s *Store) Unblock(ctx context.Context, c Credential) error {
	return s.exec(ctx, "unblock a credential",
		`UPDATE delivery.blocks SET blocked_at = NULL, probe_at = NULL, cleared_at = now()
		WHERE credential_digest = $1 AND blocked_at IS NOT NULL`, c[:])
}

// AllowProbeAfter allows another probe after a while, when the last one had no result.
func (s *Store) AllowProbeAfter(ctx context.Context, c Credential, after time.Duration) error {
	return s.exec(ctx, "allow a probe",
		`UPDATE delivery.blocks SET probe_at = now() + $2::interval
		WHERE credential_digest = $1 AND probe_at IS NOT NULL`, c[:], micros(after))
}

// Relay is the content of a heartbeat.
type Relay struct {
	ID         string
	Configured bool // an engine is configured
	Credential Credential
}

func (r Relay) digest() []byte {
	if !r.Configured {
		return nil
	}
	return r.Credential[:]
}

const upsertRelay = `
INSERT INTO delivery.relays AS r (relay_id, configured, credential_digest, heartbeat_at)
VALUES ($1, $2, $3, now())
ON CONFLICT (relay_id) DO UPDATE
SET configured = excluded.configured, credential_digest = excluded.credential_digest, heartbeat_at = now(),
    stopped = false`

// Heartbeat records that the relay is alive and how it is configured. It deletes relays without a heartbeat
// for a day, and the counts of dead letters outside of the view's window.
func (s *Store) Heartbeat(ctx context.Context, r Relay) error {
	return s.execAndUpdateClock(ctx, "heartbeat", func(b *pgx.Batch) {
		b.Queue(upsertRelay, r.ID, r.Configured, r.digest())
		b.Queue(`DELETE FROM delivery.relays
			WHERE relay_id <> $1 AND heartbeat_at < now() - interval '1 day'`, r.ID)
		b.Queue(`DELETE FROM delivery.dead_minutes WHERE minute < now() - interval '25 hours'`)
	})
}

// MarkStopped records that the relay stopped in order. Until another relay sends a heartbeat, the worker's
// state stays what this relay last reported.
func (s *Store) MarkStopped(ctx context.Context, relayID string) error {
	return s.exec(ctx, "sign off",
		`UPDATE delivery.relays SET stopped = true, heartbeat_at = now() WHERE relay_id = $1`, relayID)
}

// exec runs one statement and updates the clock of dead letters.
func (s *Store) exec(ctx context.Context, what, sql string, args ...any) error {
	return s.execAndUpdateClock(ctx, what, func(b *pgx.Batch) { b.Queue(sql, args...) })
}

func (s *Store) execAndUpdateClock(ctx context.Context, what string, queue func(*pgx.Batch)) error {
	b := &pgx.Batch{}
	queue(b)
	b.Queue(updateDeadLetterClock)
	err := pg.InTx(ctx, s.pool, func(tx pgx.Tx) error { return tx.SendBatch(ctx, b).Close() })
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
