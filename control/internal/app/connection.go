package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"storefront.internal/control/internal/jobs"
	"storefront.internal/control/internal/postgres"
	"storefront.internal/control/internal/shop"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/pg"
	"storefront.internal/shared/settings"
)

// withSwitch runs a command on the database; the role of the service suffices.
func withSwitch(ctx context.Context, environ []string, run func(*postgres.Switch) error) error {
	cfg, err := loadMigrate(environ)
	if err != nil {
		return err
	}
	pool, err := pg.Open(ctx, settings.Postgres{DatabaseURL: cfg.DatabaseURL, MaxConns: 2},
		"storefront-connection")
	if err != nil {
		return err
	}
	defer pool.Close()
	inserter, err := jobs.NewInserter(pool, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	return run(postgres.NewSwitch(pool, inserter))
}

func listDisabledConnections(ctx context.Context, environ []string, out io.Writer) error {
	return withSwitch(ctx, environ, func(s *postgres.Switch) error {
		disabled, err := s.ListDisabled(ctx)
		for _, d := range disabled {
			fmt.Fprintf(out, "%s %s disabled by %s: %s\n", d.At.UTC().Format(time.RFC3339), d.ID, d.By,
				d.Reason)
		}
		return err
	})
}

// connectionCommand disables or enables a connection. It returns nil for an unknown command.
func connectionCommand(ctx context.Context, environ, args []string, out io.Writer) func() error {
	var change func(*postgres.Switch, ident.ConnectionID) (bool, error)
	var done, missing string
	switch {
	case len(args) == 4 && args[0] == "connection" && args[1] == "disable" && args[3] != "":
		done, missing = "disabled", "no such connection is enabled"
		change = func(s *postgres.Switch, c ident.ConnectionID) (bool, error) {
			return s.Disable(ctx, c, shop.DisabledByOperator, args[3])
		}
	case len(args) == 3 && args[0] == "connection" && args[1] == "enable":
		done, missing = "enabled", "no such connection is disabled"
		change = func(s *postgres.Switch, c ident.ConnectionID) (bool, error) { return s.Enable(ctx, c) }
	default:
		return nil
	}
	return func() error {
		return withSwitch(ctx, environ, func(s *postgres.Switch) error {
			found, err := change(s, ident.ConnectionID(args[2]))
			if err == nil && !found {
				err = errors.New(missing)
			}
			if err != nil {
				return err
			}
			return emit(out, done+"\n")
		})
	}
}
