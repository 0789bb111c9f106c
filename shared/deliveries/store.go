package deliveries

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Store is the queue in PostgreSQL. Every exported method is one transaction; times and leases are PostgreSQL's.
type Store struct {
	pool *pgxpool.Pool
}

// NewStore returns the queue behind a pool. What its methods may do is decided by the pool's role.
func NewStore(pool *pgxpool.Pool) *Store { return &Store{pool: pool} }

// inTurn runs a part of a delivery's turn in a transaction. Its statements go by their keys and are planned once: to plan them
// for each turn costs more than to run them, the days' partitions above all. A queue is small and large by turns, so a plan that
// reads the whole of a table which is small now must not be kept; where one has to be read nevertheless, that looks so dear to
// the planner that it would compile the statement, which takes seconds on a busy machine.
func (s *Store) inTurn(ctx context.Context, fn func(pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{
		BeginQuery: "BEGIN; SET LOCAL plan_cache_mode = force_generic_plan; SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL jit = off",
	}, fn)
}
