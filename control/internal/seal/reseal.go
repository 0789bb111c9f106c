package seal

import (
	"context"
	"log/slog"
)

// Secret is a ciphertext and where it is stored.
type Secret struct {
	Binding Binding
	Sealed  []byte
}

// Table is a table with secrets.
type Table string

// The tables.
const (
	Credentials Table = "credentials"
	Keys        Table = "api_keys"
)

// Tables are all of them.
func Tables() []Table { return []Table{Credentials, Keys} }

// SecretStore is where sealed secrets are stored.
type SecretStore interface {
	// Older returns secrets whose header is not the primary key's, ordered by row, after a row.
	Older(ctx context.Context, t Table, primary []byte, after string, most int) ([]Secret, error)
	// Replace stores a new ciphertext if the old one is still there.
	Replace(ctx context.Context, t Table, old Secret, sealed []byte) (bool, error)
	// Count counts secrets under the primary key and under older ones.
	Count(ctx context.Context, t Table, primary []byte) (current, older int64, err error)
}

// resealBatch is how many secrets are read at a time.
const resealBatch = 200

// Resealer seals secrets of older keys with the primary key.
type Resealer struct {
	store   SecretStore
	sealer  *Sealer
	metrics *Metrics
	logger  *slog.Logger
}

// NewResealer returns a Resealer.
func NewResealer(store SecretStore, sealer *Sealer, metrics *Metrics, logger *slog.Logger) *Resealer {
	return &Resealer{store: store, sealer: sealer, metrics: metrics, logger: logger}
}

// Reseal seals all secrets of older keys again and counts the rest. It may be interrupted, repeated and run
// concurrently. A secret that changed meanwhile is left alone: the change sealed it with the primary key.
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
		secrets, err := r.store.Older(ctx, t, r.sealer.Header(), after, resealBatch)
		if err != nil || len(secrets) == 0 {
			return err
		}
		for _, s := range secrets {
			if err := r.one(ctx, t, s); err != nil {
				return err
			}
			after = s.Binding.Row
		}
	}
}

// one seals a secret again. A secret that does not open is counted and logged, and stays as it is.
func (r *Resealer) one(ctx context.Context, t Table, s Secret) error {
	plain, err := r.sealer.Open(s.Sealed, s.Binding)
	if err != nil {
		r.metrics.result(t, "unopened")
		r.logger.Error("a sealed secret does not open", "table", string(t), "row", s.Binding.Row)
		return nil
	}
	sealed, err := r.sealer.Seal(plain, s.Binding)
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

// count updates the metric of the rotation's progress.
func (r *Resealer) count(ctx context.Context, t Table) error {
	current, older, err := r.store.Count(ctx, t, r.sealer.Header())
	if err == nil {
		r.metrics.counted(t, current, older)
	}
	return err
}
