package deliveries

import (
	"context"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"storefront.internal/shared/pg"
)

// Store is the queue in PostgreSQL. Every exported method is one transaction; times and leases are by
// PostgreSQL's clock.
type Store struct {
	pool   *pgxpool.Pool
	choice chan struct{} // held by the one Lease that chooses lanes
}

// NewStore returns the queue in the pool's database. The pool's role limits what its methods may do.
func NewStore(pool *pgxpool.Pool) *Store {
	return &Store{pool: pool, choice: make(chan struct{}, 1)}
}

// choosing waits until no other Lease of this process chooses lanes, and returns the function that ends the
// caller's choice. Several at once would choose the same lanes. Each would then examine and lock lanes that
// another has leased meanwhile, and completions would wait for those locks.
func (s *Store) choosing(ctx context.Context) (chosen func(), err error) {
	select {
	case s.choice <- struct{}{}:
		return sync.OnceFunc(func() { <-s.choice }), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// withOptions begins transactions with the given options.
type withOptions struct {
	pool *pgxpool.Pool
	opts pgx.TxOptions
}

// BeginTx implements pg.Beginner.
func (w withOptions) BeginTx(ctx context.Context, _ pgx.TxOptions) (pgx.Tx, error) {
	return w.pool.BeginTx(ctx, w.opts)
}

// withQueuePlanner runs the transactions of leases, which are frequent and always find rows by their keys.
// Settings:
//   - force_generic_plan: planning costs more than the statement, above all for tables partitioned by day
//   - enable_seqscan, enable_bitmapscan, enable_hashjoin, enable_mergejoin, enable_material off: a plan made
//     while the queue is small must suit a large queue, so each row is looked up by its whole key
//   - jit off: with scans disabled a plan that needs one has a huge cost, and compiling it takes seconds
func (s *Store) withQueuePlanner(ctx context.Context, fn func(pgx.Tx) error) error {
	return pg.InTx(ctx, withOptions{s.pool,
		pgx.TxOptions{BeginQuery: "BEGIN; SET LOCAL plan_cache_mode = force_generic_plan; " +
			"SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; " +
			"SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off; " +
			"SET LOCAL enable_material = off; SET LOCAL jit = off"}}, fn)
}
