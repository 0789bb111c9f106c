package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// migrateLock is the advisory lock of one migrator at a time: "river" in ASCII.
const migrateLock = 0x7269766572

// grants are what control's role needs of River's tables, which it does not own.
const grants = `
GRANT SELECT, INSERT, UPDATE, DELETE ON control.river_job, control.river_leader, control.river_queue,
    control.river_notification TO storefront_control;
GRANT SELECT ON control.river_migration TO storefront_control;
GRANT USAGE ON SEQUENCE control.river_job_id_seq, control.river_notification_id_seq TO storefront_control;`

// Migrate migrates River's tables to this binary's version. A second migrator waits for the first. It runs
// after the migrations of the schema itself, which create the schema and the role.
func Migrate(ctx context.Context, url string) (err error) {
	pool, err := migrationPool(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	lock, err := pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("migrate jobs: %w", err)
	}
	defer lock.Release()
	if _, err := lock.Exec(ctx, `SELECT pg_advisory_lock($1)`, int64(migrateLock)); err != nil {
		return fmt.Errorf("migrate jobs: lock: %w", err)
	}
	defer func() { // closing the session ends the lock, whatever came before
		err = errors.Join(err, lock.Conn().Close(context.WithoutCancel(ctx)))
	}()
	migrator, err := newMigrator(pool)
	if err != nil {
		return err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return fmt.Errorf("migrate jobs: %w", err)
	}
	if _, err := lock.Exec(ctx, grants); err != nil {
		return fmt.Errorf("migrate jobs: grants: %w", err)
	}
	return nil
}

// Version returns the version of River's tables and the one that this binary needs.
func Version(ctx context.Context, pool *pgxpool.Pool) (current, want int64, err error) {
	migrator, err := newMigrator(pool)
	if err != nil {
		return 0, 0, err
	}
	all := migrator.AllVersions()
	want = int64(all[len(all)-1].Version)
	const selectVersion = `SELECT coalesce(max(version), 0) FROM control.river_migration WHERE line = 'main'`
	var exists bool
	if err := pool.QueryRow(ctx,
		`SELECT to_regclass('control.river_migration') IS NOT NULL`).Scan(&exists); err != nil || !exists {
		return 0, want, err
	}
	err = pool.QueryRow(ctx, selectVersion).Scan(&current)
	return current, want, err
}

func newMigrator(pool *pgxpool.Pool) (*rivermigrate.Migrator[pgx.Tx], error) {
	m, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Schema: Schema,
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, fmt.Errorf("job migrations: %w", err)
	}
	return m, nil
}

func migrationPool(ctx context.Context, url string) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil { // the parser's text may quote parts of the URL
		return nil, errors.New("database URL cannot be parsed")
	}
	cfg.MaxConns = 4
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("migrate jobs: %w", err)
	}
	return pool, nil
}
