// Package migrations holds the schema of the one database and brings a database up to it.
//
// Files are numbered, run in a transaction each, go up only, and are safe beside the previous release. Any number of migrators may run at once: one works, the others wait for it. Numbers
// may have gaps, and a lower number that arrives later is run, too. River's own tables are not here; control adds them.
package migrations

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib" // the database/sql driver that goose wants
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed *.sql
var files embed.FS

// Files are the migrations themselves, for whoever needs their digest.
func Files() fs.FS { return files }

// lockEverySecond and lockAttempts let a second migrator wait ten minutes for the first.
const (
	lockEverySecond = 1
	lockAttempts    = 600
)

// Up runs what the database lacks. It is safe beside another migrator.
func Up(ctx context.Context, url string) (err error) {
	db, err := sql.Open("pgx", url)
	if err != nil {
		return errors.New("database URL cannot be parsed")
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(lockEverySecond, lockAttempts))
	if err != nil {
		return fmt.Errorf("migration lock: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files,
		goose.WithSessionLocker(locker), goose.WithAllowOutofOrder(true), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

// Version tells the schema's state: want is the newest migration of this binary; current is the newest one up to which nothing is missing, or a newer release's that already ran. The
// database serves this binary when current >= want. It needs only the right to read goose's table.
func Version(ctx context.Context, url string) (current, want int64, err error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return 0, 0, fmt.Errorf("schema version: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	return VersionOf(ctx, conn)
}

// Querier is a pool, a connection or a transaction.
type Querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// VersionOf is Version over a pool that exists; readiness checks use it.
func VersionOf(ctx context.Context, db Querier) (current, want int64, err error) {
	wanted := versions()
	want = wanted[len(wanted)-1]
	var exists bool
	if err := db.QueryRow(ctx, `SELECT to_regclass('goose_db_version') IS NOT NULL`).Scan(&exists); err != nil {
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
	return upTo(wanted, applied), want, nil
}

// upTo is the newest wanted version before the first missing one; with none missing, the newest applied.
func upTo(wanted, applied []int64) int64 {
	var current int64
	for _, v := range wanted {
		if !slices.Contains(applied, v) {
			return current
		}
		current = v
	}
	return max(current, slices.Max(applied))
}

// versions are the numbers of the embedded files, ascending. The build fails without a file, so there is one.
func versions() []int64 {
	names, _ := fs.Glob(files, "*.sql") // the pattern is well formed
	out := make([]int64, 0, len(names))
	for _, name := range names {
		if v, err := goose.NumericComponent(name); err == nil {
			out = append(out, v)
		}
	}
	slices.Sort(out)
	return out
}
