package deliveries

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const selectBlock = `SELECT coalesce(probe_at <= now(), false) FROM delivery.blocks WHERE credential_digest = $1 AND blocked_at IS NOT NULL`

// scanBlock reports whether a probe is allowed; no row means that the credential is good.
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

// claimProbe makes this lease the only one that may probe until it expires.
func claimProbe(ctx context.Context, tx pgx.Tx, q TakeQuery) error {
	tag, err := tx.Exec(ctx, `UPDATE delivery.blocks SET probe_at = now() + $2::interval WHERE credential_digest = $1 AND probe_at <= now()`,
		q.Credential[:], micros(q.Lease))
	if err == nil && tag.RowsAffected() == 0 {
		err = ErrBlocked
	}
	return err
}

// tickClock stops or starts the clock of failing when the worker's state says so.
const tickClock = `
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

// Block records that the engine refused a credential (401). Nobody takes a lane with it from then on; another
// credential is not touched. A credential that is refused already keeps the time of the first refusal, and only the
// refusal of the probe itself takes a probe away: one that comes late, of a lease from before, does not.
func (s *Store) Block(ctx context.Context, r Refusal) error {
	return s.change(ctx, "block a credential", block, r.Credential[:], r.TakenAt, r.Probe)
}

// Unblock records that a probe was answered with anything but a refusal.
func (s *Store) Unblock(ctx context.Context, c Credential) error {
	return s.change(ctx, "unblock a credential",
		`UPDATE delivery.blocks SET blocked_at = NULL, probe_at = NULL, cleared_at = now() WHERE credential_digest = $1 AND blocked_at IS NOT NULL`, c[:])
}

// Reprobe allows another probe after a while, when the last one found out nothing.
func (s *Store) Reprobe(ctx context.Context, c Credential, after time.Duration) error {
	return s.change(ctx, "allow a probe",
		`UPDATE delivery.blocks SET probe_at = now() + $2::interval WHERE credential_digest = $1 AND probe_at IS NOT NULL`, c[:], micros(after))
}

// Relay is how a relay says that it is there.
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

const beat = `
INSERT INTO delivery.relays AS r (relay_id, configured, credential_digest, heartbeat_at)
VALUES ($1, $2, $3, now())
ON CONFLICT (relay_id) DO UPDATE
SET configured = excluded.configured, credential_digest = excluded.credential_digest, heartbeat_at = now(), stopped = false`

// Heartbeat says that the relay is there and what it is configured with, and forgets what is past: relays unheard of
// for a day, minutes outside the window of the dead.
func (s *Store) Heartbeat(ctx context.Context, r Relay) error {
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		b := &pgx.Batch{}
		b.Queue(beat, r.ID, r.Configured, r.digest())
		b.Queue(`DELETE FROM delivery.relays WHERE relay_id <> $1 AND heartbeat_at < now() - interval '1 day'`, r.ID)
		b.Queue(`DELETE FROM delivery.dead_minutes WHERE minute < now() - interval '25 hours'`)
		b.Queue(tickClock)
		return tx.SendBatch(ctx, b).Close()
	})
	if err != nil {
		return fmt.Errorf("heartbeat: %w", err)
	}
	return nil
}

// Stopped says that the relay ended in order. While no other relay speaks, its last state stays the worker's.
func (s *Store) Stopped(ctx context.Context, relayID string) error {
	return s.change(ctx, "sign off", `UPDATE delivery.relays SET stopped = true, heartbeat_at = now() WHERE relay_id = $1`, relayID)
}

// change runs one statement and lets the clock of failing follow.
func (s *Store) change(ctx context.Context, what, sql string, args ...any) error {
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		b := &pgx.Batch{}
		b.Queue(sql, args...)
		b.Queue(tickClock)
		return tx.SendBatch(ctx, b).Close()
	})
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
