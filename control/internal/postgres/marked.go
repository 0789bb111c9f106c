package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"storefront.internal/control/internal/connection"
	"storefront.internal/control/internal/observation"
	"storefront.internal/shared/ident"
)

// markedPage is how many entities one transaction looks at.
const markedPage = 500

// An entity is looked at again after an hour, also one whose shop is closed: it must not keep others from
// their turn. Locked entities are left out, since a webhook or a fetch is at them.
const takeMarked = `
WITH due AS MATERIALIZED (
    SELECT connection_id, entity, external_id
    FROM control.entities
    WHERE dirty_seq > clean_seq AND redacted_at IS NULL AND sweep_at < now()
    ORDER BY sweep_at
    LIMIT $1
    FOR NO KEY UPDATE SKIP LOCKED
),
moved AS (
    UPDATE control.entities e
    SET sweep_at = now() + interval '1 hour'
    FROM due d
    WHERE e.connection_id = d.connection_id AND e.entity = d.entity AND e.external_id = d.external_id
)
SELECT d.connection_id, d.entity, d.external_id,
    c.state = 'active' AND c.disabled_at IS NULL AND c.provider <> $2
FROM due d
JOIN control.connections c ON c.connection_id = d.connection_id
ORDER BY d.connection_id`

// RequeueMarked gives each entity that a webhook marked and no fetch has followed its job, if it has none: a
// job that was cancelled, as when a provider refused once, does not come back by itself.
func (c *Catalog) RequeueMarked(ctx context.Context) error {
	for {
		found := 0
		err := c.inTx(ctx, func(tx pgx.Tx) error {
			all, err := readMarked(ctx, tx)
			if err != nil {
				return err
			}
			found = all.found
			for conn, keys := range all.open {
				if err := c.jobs.EnqueueRefresh(ctx, tx, conn, keys...); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil || found < markedPage {
			return Translate("requeue marked entities", err)
		}
	}
}

// markedEntities are a page: those of open shops, and how many there are in total.
type markedEntities struct {
	open  map[ident.ConnectionID][]observation.Key
	found int
}

func readMarked(ctx context.Context, tx pgx.Tx) (m markedEntities, err error) {
	m.open = map[ident.ConnectionID][]observation.Key{}
	var conn ident.ConnectionID
	var key observation.Key
	var open bool
	rows, _ := tx.Query(ctx, takeMarked, markedPage, connection.ProviderCustom)
	_, err = pgx.ForEachRow(rows, []any{&conn, &key.Entity, &key.ExternalID, &open}, func() error {
		m.found++
		if open {
			m.open[conn] = append(m.open[conn], key)
		}
		return nil
	})
	return m, err
}
