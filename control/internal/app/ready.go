package app

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"storefront.internal/control/internal/jobs"
	"storefront.internal/control/internal/postgres"
	"storefront.internal/control/internal/seal"
	"storefront.internal/shared/pg/migrations"
)

// readiness makes control ready only on a schema that is not older than its own, with the keys that it needs, and when it
// listens: the operations port does so first.
func (a *App) readiness() {
	a.admin.Add("schema", func(ctx context.Context) error {
		return versions(migrations.VersionOf(ctx, a.pool))
	})
	a.admin.Add("job schema", func(ctx context.Context) error {
		return versions(jobs.Version(ctx, a.pool))
	})
	a.admin.Add("sealed secrets", a.seals.check)
	a.admin.Add("listening", func(context.Context) error {
		if a.server.bound() == "" {
			return errors.New("the internal surface does not listen yet")
		}
		return nil
	})
}

// versions takes a newer schema: each migration is safe beside the previous release.
func versions(current, want int64, err error) error {
	if err != nil {
		return postgres.Translate("read version", err)
	}
	if current < want {
		return fmt.Errorf("version is %d, this binary needs %d: run control migrate up", current, want)
	}
	return nil
}

var errSealKeyMissing = errors.New("the keyset lacks a key that stored secrets need")

// sealCheck asks once whether the keyset opens all that is stored.
type sealCheck struct {
	store  *postgres.Store
	sealer *seal.Sealer
	passed atomic.Bool
}

func (s *sealCheck) check(ctx context.Context) error {
	if s.passed.Load() {
		return nil
	}
	headers, err := s.store.SealHeaders(ctx, seal.HeaderLen)
	if err != nil {
		return err
	}
	for _, header := range headers {
		if err := s.sealer.CheckHeader(header); err != nil {
			return fmt.Errorf("%w: %w", errSealKeyMissing, err)
		}
	}
	s.passed.Store(true)
	return nil
}
