package collect

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"storefront.internal/shared/ident"
	"storefront.internal/shared/signal"
)

// database reads all tables in one snapshot.
func (c *collector) database(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, c.DatabaseURL)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	return pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly},
		func(tx pgx.Tx) error {
			for _, read := range []func(context.Context, pgx.Tx) error{c.signals, c.lines, c.parked,
				c.deliveries,
				c.queueCounts, c.archive, c.catalog, c.stuck} {
				if err := read(ctx, tx); err != nil {
					return err
				}
			}
			return nil
		})
}

// forEachRow runs a query and calls keep after it has scanned a row into the targets.
func forEachRow(ctx context.Context, tx pgx.Tx, query string, targets []any, keep func() error) error {
	rows, err := tx.Query(ctx, query)
	if err == nil {
		_, err = pgx.ForEachRow(rows, targets, keep)
	}
	if err != nil {
		return fmt.Errorf("%.40s: %w", query, err)
	}
	return nil
}

func (c *collector) signals(ctx context.Context, tx pgx.Tx) error {
	var s Signal
	var received, occurred time.Time
	err := forEachRow(ctx, tx, `SELECT connection_id, signal_id, type, decision_id, coalesce(item_id, ''),
		coalesce(variant_id, ''),
		coalesce(visitor_id, ''), quantity, record_index, received_at, occurred_at FROM relay.signals`,
		[]any{&s.Connection, &s.ID, &s.Type, &s.Decision, &s.Item, &s.Variant, &s.Visitor, &s.Quantity,
			&s.Index, &received, &occurred},
		func() error {
			s.Connection, s.Type, s.Decision, s.Item, s.Variant = c.intern(s.Connection), c.intern(s.Type),
				c.intern(s.Decision), c.intern(s.Item), c.intern(s.Variant)
			s.Received, s.Occurred = received.UnixMicro(), occurred.UnixMicro()
			c.state.Signals = append(c.state.Signals, s)
			s.Quantity = nil
			return nil
		})
	if err != nil {
		return err
	}
	return c.ledger(ctx, tx)
}

// ledger counts the digests of both forms of the ledger by the connections of the stored signals.
func (c *collector) ledger(ctx context.Context, tx pgx.Tx) error {
	digests := map[[16]byte]bool{}
	var d [16]byte
	const query = `SELECT digest FROM relay.ledger_digests UNION SELECT digest FROM relay.ledger`
	err := forEachRow(ctx, tx, query, []any{&d}, func() error {
		digests[d] = true
		return nil
	})
	if err != nil {
		return err
	}
	for _, s := range c.state.Signals {
		key := signal.LedgerDigest(ident.ConnectionID(s.Connection), ident.SignalID(s.ID))
		if digests[key] {
			c.state.Ledger[s.Connection]++
			delete(digests, key)
		}
	}
	c.state.LedgerOnly = len(digests)
	return nil
}

func (c *collector) lines(ctx context.Context, tx pgx.Tx) error {
	var l CartLine
	return forEachRow(ctx, tx,
		`SELECT connection_id, decision_id, item_id, variant_id, quantity, revision FROM relay.cart_lines`,
		[]any{&l.Connection, &l.Decision, &l.Item, &l.Variant, &l.Quantity, &l.Revision}, func() error {
			l.Connection, l.Decision, l.Item, l.Variant = c.intern(l.Connection), c.intern(l.Decision),
				c.intern(l.Item), c.intern(l.Variant)
			c.state.Lines = append(c.state.Lines, l)
			return nil
		})
}

func (c *collector) parked(ctx context.Context, tx pgx.Tx) error {
	var p ParkedSignal
	return forEachRow(ctx, tx,
		`SELECT coalesce(connection_id, ''), coalesce(signal_id, ''), reason, sqlstate FROM relay.parked
		WHERE replayed_at IS NULL AND dropped_at IS NULL`,
		[]any{&p.Connection, &p.Signal, &p.Reason, &p.SQLState}, func() error {
			c.state.Parked = append(c.state.Parked, p)
			return nil
		})
}

func (c *collector) deliveries(ctx context.Context, tx pgx.Tx) error {
	var d Delivery
	var dead bool
	return forEachRow(ctx, tx, `
		SELECT connection_id, CASE kind WHEN 1 THEN 'interaction' ELSE 'envelope' END, id, dead
		FROM (SELECT connection_id, kind, id, false AS dead FROM delivery.entries
			UNION ALL SELECT connection_id, kind, id, true FROM delivery.dead) AS both_of_them`,
		[]any{&d.Connection, &d.Kind, &d.ID, &dead}, func() error {
			d.Connection, d.Kind = c.intern(d.Connection), c.intern(d.Kind)
			if dead {
				c.state.Dead = append(c.state.Dead, d)
			} else {
				c.state.Pending = append(c.state.Pending, d)
			}
			return nil
		})
}

// queueCounts counts the rows of the queue and reads the stored counts. The in-flight deliveries of an
// expired lease become unconfirmed at the next lease of the lane.
func (c *collector) queueCounts(ctx context.Context, tx pgx.Tx) error {
	var s QueueCounts
	return forEachRow(ctx, tx, `
		WITH parts (connection_id, pending, unconfirmed, dead, counted, counted_unconfirmed) AS (
			SELECT connection_id, 1, 0, 0, 0, 0 FROM delivery.entries WHERE kind = 1
			UNION ALL SELECT connection_id, 0, cardinality(unconfirmed), 0, 0, 0 FROM delivery.lanes
				WHERE kind = 1
			UNION ALL SELECT connection_id, 0, 0, 1, 0, 0 FROM delivery.dead
				WHERE kind = 1 AND died_at > now() - interval '24 hours'
			UNION ALL SELECT connection_id, 0, 0, 0, pending, unconfirmed FROM delivery.counts WHERE kind = 1
			UNION ALL SELECT connection_id, 0, 0, 0, pending, unconfirmed FROM delivery.deltas WHERE kind = 1
		)
		SELECT connection_id, sum(pending)::bigint, sum(unconfirmed)::bigint, sum(dead)::bigint,
			sum(counted)::bigint, sum(counted_unconfirmed)::bigint
		FROM parts GROUP BY connection_id`,
		[]any{&s.Connection, &s.Pending, &s.Unconfirmed, &s.Dead, &s.Counted,
			&s.CountedUnconfirmed}, func() error {
			c.state.Queue = append(c.state.Queue, s)
			return nil
		})
}

func (c *collector) archive(ctx context.Context, tx pgx.Tx) error {
	var o Observation
	var raw []byte
	var custom bool
	return forEachRow(ctx, tx, `
		SELECT o.observation_id, o.connection_id, o.entity, o.external_id, o.operation, o.state, o.revision,
		    o.raw,
			c.provider = 'custom', o.redacted_at
		FROM control.observations AS o JOIN control.connections AS c USING (connection_id)`,
		[]any{&o.ID, &o.Connection, &o.Entity, &o.External, &o.Operation, &o.State, &o.Revision, &raw,
			&custom, &o.Redacted}, func() error {
			o.Connection, o.Entity, o.Operation, o.State = c.intern(o.Connection), c.intern(o.Entity),
				c.intern(o.Operation), c.intern(o.State)
			o.Raw = digest(raw)
			if custom {
				o.Raw = digest(rawOf(raw))
			}
			c.state.Observations = append(c.state.Observations, o)
			o.Redacted = nil
			return nil
		})
}

// rawOf returns the bytes of the member `raw` of an archived element, if there is one.
func rawOf(element []byte) []byte {
	var members struct {
		Raw json.RawMessage `json:"raw"`
	}
	if json.Unmarshal(element, &members) != nil {
		return nil
	}
	return members.Raw
}

// digest returns the SHA-256 in hex, or "" for no bytes.
func digest(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func (c *collector) catalog(ctx context.Context, tx pgx.Tx) error {
	var e Entity
	err := forEachRow(ctx, tx, `
		SELECT e.connection_id, e.entity, e.external_id, e.operation, e.observation_id, e.revision,
			c.provider = 'custom'
		FROM control.entities AS e JOIN control.connections AS c USING (connection_id)`,
		[]any{&e.Connection, &e.Entity, &e.External, &e.Operation, &e.Observation, &e.Revision,
			&e.Custom}, func() error {
			c.state.Entities = append(c.state.Entities, e)
			return nil
		})
	if err != nil {
		return err
	}
	if err := tx.QueryRow(ctx,
		`SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`,
	).Scan(&c.state.Deadlocks); err != nil {
		return err
	}
	var a Aggregate
	return forEachRow(ctx, tx,
		`SELECT connection_id, item_id, refresh_revision, body IS NULL FROM control.aggregates`,
		[]any{&a.Connection, &a.Item, &a.Revision, &a.Deleted}, func() error {
			c.state.Aggregates = append(c.state.Aggregates, a)
			return nil
		})
}
