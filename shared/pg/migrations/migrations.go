// Package migrations holds the schema of the database and migrates a database up to it.
//
// Migrations are numbered, run in one transaction each unless they say NO TRANSACTION, only go up, and are
// safe while the previous release runs. They are files of SQL, and functions where one statement is not
// enough, such as an index of a partitioned table. Several migrators may run at once: one works, the others
// wait. Numbers may have gaps, and a lower number that is added later is run too. The tables of River are not
// here; control adds them.
package migrations

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"storefront.internal/shared/backoff"
	"storefront.internal/shared/pg"
)

//go:embed *.sql
var files embed.FS

// Files returns the migrations, for callers that need their digest.
func Files() fs.FS { return files }

// A second migrator waits up to ten minutes for the first: lockAttempts attempts, each lockInterval seconds.
const (
	lockInterval = 1
	lockAttempts = 600
)

// A statement that waits for a lock makes every later user of the table wait behind it. So a migration gives
// up after lockTimeout and starts again, up to blockedAttempts times. Each attempt waits a little longer than
// the one before it, up to maxLockTimeout: under load all transactions may take longer than the first one.
const (
	lockTimeout     = 300 * time.Millisecond
	maxLockTimeout  = 2 * time.Second
	lockTimeoutStep = 10 * time.Millisecond
	blockedPause    = time.Second
	blockedAttempts = 300
)

// Up runs the missing migrations. It is safe beside other migrators and beside traffic.
func Up(ctx context.Context, url string) error {
	return up(ctx, url, files, functions(), lockTimeout)
}

func up(ctx context.Context, url string, files fs.FS, functions []*goose.Migration,
	lockTimeout time.Duration) error {
	cfg, err := pgx.ParseConfig(url)
	if err != nil { // the parser's error may quote parts of the URL
		return errors.New("database URL cannot be parsed")
	}
	_, set := cfg.RuntimeParams["lock_timeout"]
	for attempt := 1; ; attempt++ {
		if !set {
			cfg.RuntimeParams["lock_timeout"] = strconv.FormatInt(lockTimeout.Milliseconds(), 10)
		}
		err := try(ctx, cfg, files, functions)
		if err == nil {
			return nil
		}
		blocked := pg.SQLState(err) == pg.LockNotAvailable
		if !blocked || attempt == blockedAttempts || backoff.Sleep(ctx, blockedPause) != nil {
			return fmt.Errorf("migrate: %w", err)
		}
		lockTimeout = max(lockTimeout, min(lockTimeout+lockTimeoutStep, maxLockTimeout))
	}
}

// try runs the missing migrations until one fails.
func try(ctx context.Context, cfg *pgx.ConnConfig, files fs.FS, functions []*goose.Migration) (err error) {
	db := stdlib.OpenDB(*cfg)
	defer func() { err = errors.Join(err, db.Close()) }()
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(lockInterval, lockAttempts))
	if err != nil {
		return fmt.Errorf("migration lock: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files,
		goose.WithSessionLocker(locker), goose.WithAllowOutofOrder(true),
		goose.WithDisableGlobalRegistry(true), goose.WithGoMigrations(functions...))
	if err != nil {
		return err
	}
	_, err = provider.Up(ctx)
	return err
}

// Querier is a pool, a connection or a transaction.
type Querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Version returns the state of the schema: want is the newest migration of this binary; current is the newest
// one before the first that is missing, or the newest that ran when none is missing, which may be one of a
// newer release. The database serves this binary when current >= want. Version only needs the right to read
// goose's table.
func Version(ctx context.Context, db Querier) (current, want int64, err error) {
	wanted := versions()
	want = wanted[len(wanted)-1]
	var exists bool
	if err := db.QueryRow(ctx,
		`SELECT to_regclass('goose_db_version') IS NOT NULL`).Scan(&exists); err != nil {
		return 0, want, fmt.Errorf("schema version: %w", err)
	}
	if !exists {
		return 0, want, nil
	}
	rows, err := db.Query(ctx, `SELECT version_id FROM goose_db_version WHERE is_applied`)
	if err != nil {
		return 0, want, fmt.Errorf("schema version: %w", err)
	}
	applied, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return 0, want, fmt.Errorf("schema version: %w", err)
	}
	return currentVersion(wanted, applied), want, nil
}

// currentVersion returns the newest wanted version before the first missing one, or the newest applied when
// none is missing.
func currentVersion(wanted, applied []int64) int64 {
	var current int64
	for _, v := range wanted {
		if !slices.Contains(applied, v) {
			return current
		}
		current = v
	}
	return max(current, slices.Max(applied))
}

// versions returns the numbers of all migrations in ascending order. There is at least one file, since the
// build fails otherwise.
func versions() []int64 {
	names, _ := fs.Glob(files, "*.sql") // the pattern is well formed
	out := make([]int64, 0, len(names))
	for _, name := range names {
		if v, err := goose.NumericComponent(name); err == nil {
			out = append(out, v)
		}
	}
	for _, f := range functions() {
		out = append(out, f.Version)
	}
	slices.Sort(out)
	return out
}
