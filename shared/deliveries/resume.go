package deliveries

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"storefront.internal/shared/fault"
	"storefront.internal/shared/pg"
)

// Resume lets one request try the refused credential again. It fails with fault.NotBlocked unless the worker
// is blocked.
func (s *Store) Resume(ctx context.Context) error {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		v, err := readWorker(ctx, tx)
		if err != nil {
			return fmt.Errorf("resume: %w", err)
		}
		if v.Worker.State != Blocked {
			return fault.New(fault.NotBlocked, "delivery to the engine is not blocked")
		}
		if _, err := tx.Exec(ctx,
			`UPDATE delivery.blocks SET probe_at = now() WHERE blocked_at IS NOT NULL`); err != nil {
			return fmt.Errorf("resume: %w", err)
		}
		return nil
	})
}
