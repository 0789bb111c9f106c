package jobs

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"storefront.internal/shared/ident"
)

// saga takes an installation on. It carries no more than what to look up.
type saga struct {
	InstallationID ident.InstallationID `json:"installation_id"`
	Epoch          int                  `json:"epoch"`
}

// Kind implements river.JobArgs.
func (saga) Kind() string { return "installation_saga" }

// EnqueueSaga enqueues an installation with the transaction that opens it.
func (i *Inserter) EnqueueSaga(ctx context.Context, tx pgx.Tx, id ident.InstallationID, epoch int) error {
	if _, err := i.client.InsertTx(ctx, tx, saga{id, epoch}, nil); err != nil {
		return fmt.Errorf("enqueue saga: %w", err)
	}
	return nil
}
