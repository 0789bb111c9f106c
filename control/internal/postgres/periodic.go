package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"storefront.internal/shared/pg"
)

// periodicPage is how many shops one transaction of periodic work handles: it holds their rows for some tens
// of milliseconds, and others wait for no more than that.
const periodicPage = 200

// placeInInterval is the place of connection c within an interval, from 0 to 1. What is done once in an
// interval for each shop is spread over it by this.
const placeInInterval = `(hashtext(c.connection_id) & 65535) / 65536.0`

// inPages calls page, in one transaction each, until one handles less than a page. What is done stays done
// when a later page fails.
func inPages(ctx context.Context, db pg.Beginner, doing string, page func(pgx.Tx) (int, error)) error {
	for {
		var n int
		err := pg.InTx(ctx, pg.CustomPlans(db), func(tx pgx.Tx) (err error) {
			n, err = page(tx)
			return err
		})
		if err != nil || n < periodicPage {
			return Translate(doing, err)
		}
	}
}
