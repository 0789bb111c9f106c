package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"storefront.internal/engine-relay/internal/sink"
	"storefront.internal/shared/pg"
)

// markStored locks the rows in one order, so that two sinks do not deadlock. stored holds every offset whose
// record is stored; those before the first gap are how far the partition is stored.
const markStored = `
WITH k AS (
    SELECT topic, topic_partition, range_agg(int8range(first, next)) AS spans
    FROM unnest($2::text[], $3::integer[], $4::bigint[], $5::bigint[])
        AS k (topic, topic_partition, first, next)
    GROUP BY topic, topic_partition
), mine AS (
    SELECT topic, topic_partition, k.spans
    FROM relay.stored_offsets AS o JOIN k USING (topic, topic_partition)
    WHERE o.assignment = $1
    ORDER BY topic, topic_partition
    FOR NO KEY UPDATE OF o
)
UPDATE relay.stored_offsets AS o
SET stored = o.stored + mine.spans, updated_at = now()
FROM mine
WHERE o.topic = mine.topic AND o.topic_partition = mine.topic_partition
RETURNING o.topic, o.topic_partition, (SELECT upper(r) FROM unnest(o.stored) AS r LIMIT 1)`

// MarkStored implements sink.Tx.
func (t *tx) MarkStored(ctx context.Context, assignment string, spans []sink.Span) ([]sink.Position, error) {
	n := len(spans)
	rows, err := t.Query(ctx, markStored, assignment,
		pg.Column(n, func(i int) string { return spans[i].Topic }),
		pg.Column(n, func(i int) int32 { return int32(spans[i].ID) }),
		pg.Column(n, func(i int) int64 { return spans[i].From }),
		pg.Column(n, func(i int) int64 { return spans[i].To }))
	return positions(rows, err)
}

// Positions implements consumer.Offsets.
func (s *Store) Positions(ctx context.Context, assignment string) ([]sink.Position, error) {
	rows, err := s.pool.Query(ctx, `
SELECT topic, topic_partition, (SELECT upper(r) FROM unnest(stored) AS r LIMIT 1)
FROM relay.stored_offsets WHERE assignment = $1`, assignment)
	return positions(rows, err)
}

func positions(rows pgx.Rows, err error) ([]sink.Position, error) {
	var all []sink.Position
	if err == nil {
		var p sink.Position
		_, err = pgx.ForEachRow(rows, []any{&p.Topic, &p.ID, &p.Next}, func() error {
			all = append(all, p)
			return nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("stored offsets: %w", err)
	}
	return all, nil
}

// beginOffsets marks all offsets before the start as stored. -1 is no offset; it makes a beginning of what
// would be nothing for a start at 0.
const beginOffsets = `
INSERT INTO relay.stored_offsets AS o (topic, topic_partition, cluster_id, assignment, stored)
VALUES ($1, $2, $3, $4, int8multirange(int8range(-1, $5)))
ON CONFLICT (topic, topic_partition) DO UPDATE
SET cluster_id = excluded.cluster_id, assignment = excluded.assignment, stored = excluded.stored,
    updated_at = now()`

// Begin implements consumer.Offsets. What is stored is read and replaced in one transaction, since PostgreSQL
// may be restored between two.
func (s *Store) Begin(ctx context.Context, assignment, cluster string, partitions []sink.Resumption) ([]int64,
	error) {
	starts := make([]int64, len(partitions))
	err := pg.InTx(ctx, s.pool, func(t pgx.Tx) error {
		for i, p := range partitions {
			held, err := heldOffsets(ctx, t, p.Partition)
			if err != nil {
				return err
			}
			starts[i] = p.Start(cluster, held)
			_, err = t.Exec(ctx, beginOffsets, p.Topic, p.ID, cluster, assignment, starts[i])
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("begin with %d partitions: %w", len(partitions), err)
	}
	return starts, nil
}

// heldOffsets locks the row; it returns nil when there is none.
func heldOffsets(ctx context.Context, t pgx.Tx, p sink.Partition) (*sink.Held, error) {
	rows, err := t.Query(ctx, `
SELECT cluster_id, (SELECT upper(r) FROM unnest(stored) AS r LIMIT 1)
FROM relay.stored_offsets WHERE topic = $1 AND topic_partition = $2 FOR NO KEY UPDATE`, p.Topic, p.ID)
	if err != nil {
		return nil, err
	}
	all, err := pgx.CollectRows(rows, pgx.RowToAddrOfStructByPos[sink.Held])
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return all[0], nil
}
