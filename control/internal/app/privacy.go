package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"storefront.internal/control/internal/jobs"
	"storefront.internal/control/internal/postgres"
	"storefront.internal/control/internal/privacy"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/pg"
	"storefront.internal/shared/settings"
)

// withPrivacy runs a command on the database; the role of the service suffices.
func withPrivacy(ctx context.Context, environ []string,
	run func(*postgres.Privacy, *pgxpool.Pool) error) error {
	cfg, err := loadMigrate(environ)
	if err != nil {
		return err
	}
	pool, err := pg.Open(ctx, settings.Postgres{DatabaseURL: cfg.DatabaseURL, MaxConns: 2},
		"storefront-privacy")
	if err != nil {
		return err
	}
	defer pool.Close()
	return run(postgres.NewPrivacy(pool), pool)
}

// listPrivacyRequests prints ids only. The personal data is in control.webhook_deliveries, under the id of
// the request.
func listPrivacyRequests(ctx context.Context, environ []string, out io.Writer) error {
	return withPrivacy(ctx, environ, func(p *postgres.Privacy, _ *pgxpool.Pool) error {
		open, err := p.ListOpen(ctx)
		if err != nil {
			return err
		}
		for i := range open {
			r := &open[i]
			fmt.Fprintf(out, "%s %s %s %s orders: %s%s\n", r.ReceivedAt.UTC().Format(time.RFC3339), r.Kind,
				r.ID, r.ConnectionID, strings.Join(r.Orders, ","), matchesText(r))
		}
		return nil
	})
}

// matchesText says what a held redaction waits for, "" for other requests.
func matchesText(r *privacy.Request) string {
	switch {
	case r.Matches == 0:
		return ""
	case r.Approved:
		return fmt.Sprintf(" matches: %d more orders, approved", r.Matches)
	default:
		return fmt.Sprintf(" matches: %d more orders, held: approve or refuse", r.Matches)
	}
}

// privacyCommand decides a request. It returns nil for an unknown command.
func privacyCommand(ctx context.Context, environ, args []string, out io.Writer) func() error {
	if len(args) != 3 || args[0] != "privacy" {
		return nil
	}
	id := ident.WebhookEventID(args[2])
	var decide func(*postgres.Privacy, *pgxpool.Pool) (bool, error)
	var done, missing string
	switch args[1] {
	case "done":
		done, missing = "ended", "no such data request is open"
		decide = func(p *postgres.Privacy, _ *pgxpool.Pool) (bool, error) {
			return p.CompleteDataRequest(ctx, id)
		}
	case "approve":
		done, missing = "approved", "no such redaction is held"
		decide = func(p *postgres.Privacy, pool *pgxpool.Pool) (bool, error) {
			inserter, err := jobs.NewInserter(pool, slog.New(slog.DiscardHandler))
			if err != nil {
				return false, err
			}
			return p.Approve(ctx, inserter, id)
		}
	case "refuse":
		done, missing = "refused", "no such redaction is held"
		decide = func(p *postgres.Privacy, _ *pgxpool.Pool) (bool, error) { return p.Refuse(ctx, id) }
	default:
		return nil
	}
	return func() error {
		return withPrivacy(ctx, environ, func(p *postgres.Privacy, pool *pgxpool.Pool) error {
			found, err := decide(p, pool)
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
