// Package reseal owns the rotation of the keyset that seals secrets at rest: what an older key sealed is sealed anew by
// the primary one, in the background, until nothing needs the older key any more and it can be retired. A secret that
// changed meanwhile is left alone: whoever changed it sealed it. The package refuses to say what a secret is.
package reseal

import (
	"bytes"
	"context"
	"log/slog"

	"storefront.internal/control/internal/seal"
)

// Secret is a ciphertext and where it is stored.
type Secret struct {
	Place  seal.Place
	Sealed []byte
}

// Table is where secrets of one kind are.
type Table string

// The tables.
const (
	Credentials Table = "credentials"
	Keys        Table = "api_keys"
)

// Tables are all of them.
func Tables() []Table { return []Table{Credentials, Keys} }

// Store is where sealed secrets are.
type Store interface {
	// Older returns secrets whose header is another than the primary key's, in the order of their rows, after a row.
	Older(ctx context.Context, t Table, primary []byte, after string, most int) ([]Secret, error)
	// Replace stores another ciphertext where the old one still is.
	Replace(ctx context.Context, t Table, old Secret, sealed []byte) (bool, error)
	// Count counts secrets under the primary key and under older ones.
	Count(ctx context.Context, t Table, primary []byte) (current, older int64, err error)
}

// batch is how many secrets are read at a time.
const batch = 200

// Resealer seals secrets anew.
type Resealer struct {
	store   Store
	sealer  *seal.Sealer
	metrics *Metrics
	logger  *slog.Logger
}

// New returns a Resealer.
func New(store Store, sealer *seal.Sealer, metrics *Metrics, logger *slog.Logger) *Resealer {
	return &Resealer{store: store, sealer: sealer, metrics: metrics, logger: logger}
}

// Reseal seals everything that is under an older key anew and counts what is left. It may be ended anywhere, be asked
// repeatedly and run beside another.
func (r *Resealer) Reseal(ctx context.Context) error {
	for _, t := range Tables() {
		if err := r.table(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

func (r *Resealer) table(ctx context.Context, t Table) error {
	for after := ""; ; {
		if err := r.count(ctx, t); err != nil {
			return err
		}
		secrets, err := r.store.Older(ctx, t, r.sealer.Header(), after, batch)
		if err != nil || len(secrets) == 0 {
			return err
		}
		for _, s := range secrets {
			if err := r.one(ctx, t, s); err != nil {
				return err
			}
			after = s.Place.Row
		}
	}
}

// one seals a secret anew. One that does not open stays as it is: it is counted and told, and the rest goes on.
func (r *Resealer) one(ctx context.Context, t Table, s Secret) error {
	clear, err := r.sealer.Open(s.Sealed, s.Place)
	if err != nil {
		r.metrics.result(t, "unopened")
		r.logger.Error("a sealed secret does not open", "table", string(t), "row", s.Place.Row)
		return nil
	}
	sealed, err := r.sealer.Seal(clear, s.Place)
	if err != nil {
		return err
	}
	replaced, err := r.store.Replace(ctx, t, s, sealed)
	if err != nil {
		return err
	}
	if replaced {
		r.metrics.result(t, "resealed")
	} else {
		r.metrics.result(t, "changed")
	}
	return nil
}

// count tells how far the rotation is.
func (r *Resealer) count(ctx context.Context, t Table) error {
	current, older, err := r.store.Count(ctx, t, bytes.Clone(r.sealer.Header()))
	if err == nil {
		r.metrics.counted(t, current, older)
	}
	return err
}
