package deliveries

import "github.com/jackc/pgx/v5/pgxpool"

// Store is the queue in PostgreSQL. Every exported method is one transaction; times and leases are PostgreSQL's.
type Store struct {
	pool *pgxpool.Pool
}

// NewStore returns the queue behind a pool. What its methods may do is decided by the pool's role.
func NewStore(pool *pgxpool.Pool) *Store { return &Store{pool: pool} }
