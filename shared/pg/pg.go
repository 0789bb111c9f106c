// Package pg opens connection pools with all timeouts set, runs transactions, classifies errors of PostgreSQL
// by what a caller can do about them, and lists the advisory locks.
//
// It owns no SQL: queries live in the postgres packages of the services. It never repeats a COMMIT whose
// answer was lost, and never prints an error's Detail or Where, which quote rows.
package pg

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"storefront.internal/shared/settings"
)

// defaultStatementTimeout is used by services that set none.
const defaultStatementTimeout = 10 * time.Second

// Open returns a pool. It does not connect, so a service starts while PostgreSQL is down and reports that in
// its readiness. Parameters in the URL take precedence over the settings.
func Open(ctx context.Context, s settings.Postgres, appName string) (*pgxpool.Pool, error) {
	return OpenTraced(ctx, s, appName, nil)
}

// OpenTraced is Open with a tracer of the statements; nil traces nothing.
func OpenTraced(ctx context.Context, s settings.Postgres, appName string,
	tracer pgx.QueryTracer) (*pgxpool.Pool, error) {
	cfg, err := poolConfig(s, appName)
	if err != nil {
		return nil, err
	}
	cfg.ConnConfig.Tracer = tracer
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open pool: %w", err)
	}
	return pool, nil
}

func poolConfig(s settings.Postgres, appName string) (*pgxpool.Config, error) {
	cfg, err := pgxpool.ParseConfig(s.DatabaseURL.Reveal())
	if err != nil { // the parser's error may quote parts of the URL
		return nil, errors.New("database URL cannot be parsed")
	}
	if s.StatementTimeout == 0 {
		s.StatementTimeout = defaultStatementTimeout
	}
	setDefault(cfg, "application_name", appName)
	setDefault(cfg, "timezone", "UTC")
	setDefault(cfg, "statement_timeout", milliseconds(s.StatementTimeout))
	if s.LockTimeout > 0 {
		setDefault(cfg, "lock_timeout", milliseconds(s.LockTimeout))
	}
	if s.IdleInTxTimeout > 0 {
		setDefault(cfg, "idle_in_transaction_session_timeout", milliseconds(s.IdleInTxTimeout))
	}
	if s.MaxConns > 0 {
		cfg.MaxConns = s.MaxConns
	}
	if cfg.ConnConfig.ConnectTimeout == 0 {
		cfg.ConnConfig.ConnectTimeout = 5 * time.Second
	}
	cfg.MaxConnLifetime = 30 * time.Minute
	cfg.MaxConnLifetimeJitter = 5 * time.Minute
	cfg.MaxConnIdleTime = 5 * time.Minute
	cfg.HealthCheckPeriod = 15 * time.Second
	return cfg, nil
}

func setDefault(cfg *pgxpool.Config, name, value string) {
	if _, set := cfg.ConnConfig.RuntimeParams[name]; !set {
		cfg.ConnConfig.RuntimeParams[name] = value
	}
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(max(d.Milliseconds(), 1), 10) }
