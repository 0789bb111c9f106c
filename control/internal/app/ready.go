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

// readiness adds the checks: the schemas are not older than this binary's, the keyset has every needed key,
// and the internal surface listens. The operations port listens before all that.
func (a *App) readiness() {
	a.admin.AddCheck("schema", func(ctx context.Context) error {
		return versions(migrations.Version(ctx, a.pool))
	})
	a.admin.AddCheck("job schema", func(ctx context.Context) error {
		return versions(jobs.Version(ctx, a.pool))
	})
	a.admin.AddCheck("sealed secrets", a.seals.check)
	a.admin.AddCheck("listening", func(context.Context) error {
		if a.server.bound() == "" {
			return errors.New("the internal surface does not listen yet")
		}
		return nil
	})
}

// versions accepts a newer schema: each migration works beside the previous release.
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

// sealCheck checks once whether the keyset opens all stored secrets.
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
