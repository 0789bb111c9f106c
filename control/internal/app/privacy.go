package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"storefront.internal/control/internal/postgres"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/pg"
	"storefront.internal/shared/settings"
)

// withPrivacy runs a command on the database of the service, whose role is enough.
func withPrivacy(ctx context.Context, environ []string, run func(*postgres.Privacy) error) error {
	cfg, err := loadMigrate(environ)
	if err != nil {
		return err
	}
	pool, err := pg.Open(ctx, settings.Postgres{DatabaseURL: cfg.DatabaseURL, MaxConns: 2}, "storefront-privacy")
	if err != nil {
		return err
	}
	defer pool.Close()
	return run(postgres.NewPrivacy(pool))
}

// listPrivacyRequests prints ids only: whom a request is about stands in control.webhook_deliveries under its id.
func listPrivacyRequests(ctx context.Context, environ []string, out io.Writer) error {
	return withPrivacy(ctx, environ, func(p *postgres.Privacy) error {
		open, err := p.Open(ctx)
		if err != nil {
			return err
		}
		for i := range open {
			r := &open[i]
			fmt.Fprintf(out, "%s %s %s %s orders: %s\n", r.ReceivedAt.UTC().Format(time.RFC3339), r.Kind, r.ID, r.ConnectionID, strings.Join(r.Orders, ","))
		}
		return nil
	})
}

func endPrivacyRequest(ctx context.Context, environ []string, id string, out io.Writer) error {
	return withPrivacy(ctx, environ, func(p *postgres.Privacy) error {
		ended, err := p.EndDataRequest(ctx, ident.DeliveryID(id))
		if err == nil && !ended {
			err = errors.New("there is no such data request, or it is completed")
		}
		if err != nil {
			return err
		}
		return emit(out, "ended\n")
	})
}
