package testkit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"storefront.internal/shared/pg/migrations"
)

const (
	setupTimeout = 2 * time.Minute
	adminLock    = 0x73746f7265 // one lock for all changes of the cluster: templates and roles
	password     = "storefront-test"
)

// Postgres returns the URL (superuser) of a fresh, migrated database that is dropped when the test ends.
func Postgres(t testing.TB) string {
	t.Helper()
	return PostgresWith(t, "", nil)
}

// PostgresWith is Postgres with additions to the template: extra runs once, after the migrations. The name
// identifies what extra does and changes with it (for example "river0510"); it holds lower-case letters,
// digits and underscores.
func PostgresWith(t testing.TB, name string, extra func(ctx context.Context, url string) error) string {
	t.Helper()
	admin := address(t, "TEST_DATABASE_URL")
	ctx, cancel := context.WithTimeout(context.Background(), setupTimeout)
	defer cancel()
	template, err := templateName(name)
	if err != nil {
		t.Fatalf("testkit: %v", err)
	}
	database := Name("storefront_test_")
	err = locked(ctx, admin,
		func(conn *pgx.Conn) error { return ensureTemplate(ctx, conn, admin, template, extra) })
	if err != nil {
		t.Fatalf("testkit: template database: %v", err)
	}
	return clone(ctx, t, admin, template, database)
}

// PostgresEmpty returns the URL of a database without any schema, for tests of the migrations themselves.
func PostgresEmpty(t testing.TB) string {
	t.Helper()
	admin := address(t, "TEST_DATABASE_URL")
	ctx, cancel := context.WithTimeout(context.Background(), setupTimeout)
	defer cancel()
	return clone(ctx, t, admin, "template0", Name("storefront_test_"))
}

// PostgresAs returns the URL of the same database for a login role that is a member of the group role, such
// as storefront_edge.
func PostgresAs(t testing.TB, databaseURL, group string) string {
	t.Helper()
	admin := address(t, "TEST_DATABASE_URL")
	ctx, cancel := context.WithTimeout(context.Background(), setupTimeout)
	defer cancel()
	login := group + "_login"
	err := locked(ctx, admin, func(conn *pgx.Conn) error {
		var ready bool
		err := conn.QueryRow(ctx,
			`SELECT EXISTS (SELECT FROM pg_auth_members m 
			    WHERE m.member = to_regrole($1) AND m.roleid = to_regrole($2))`, login, group).Scan(&ready)
		if err != nil || ready {
			return err
		}
		_, err = conn.Exec(ctx, "CREATE ROLE "+quote(login)+" LOGIN PASSWORD '"+password+"' IN ROLE "+
			quote(group))
		return err
	})
	if err != nil {
		t.Fatalf("testkit: role %s: %v", login, err)
	}
	u, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatalf("testkit: database URL: %v", err)
	}
	u.User = url.UserPassword(login, password)
	return u.String()
}

// Pool opens a small pool and closes it when the test ends, before the database is dropped.
func Pool(t testing.TB, databaseURL string) *pgxpool.Pool {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(databaseURL)
	if err != nil {
		t.Fatalf("testkit: pool: %v", err)
	}
	cfg.MaxConns = 4
	pool, err := pgxpool.NewWithConfig(context.Background(), cfg)
	if err != nil {
		t.Fatalf("testkit: pool: %v", err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// templateName returns a name that depends on the migrations and on extra only.
func templateName(extra string) (string, error) {
	h := sha256.New()
	err := fs.WalkDir(migrations.Files(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		f, err := migrations.Files().Open(path)
		if err != nil {
			return err
		}
		fmt.Fprintf(h, "%s\n", path)
		_, err = io.Copy(h, f)
		return errors.Join(err, f.Close())
	})
	name := "storefront_tpl_" + hex.EncodeToString(h.Sum(nil))[:12]
	if extra != "" {
		name += "_" + extra
	}
	return name, err
}

// ensureTemplate creates the template under a temporary name and renames it at the end, so that a killed test
// leaves no incomplete one.
func ensureTemplate(ctx context.Context, conn *pgx.Conn, admin, template string,
	extra func(context.Context, string) error) error {
	var exists bool
	if err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`,
		template).Scan(&exists); err != nil || exists {
		return err
	}
	building := template + "_b"
	for _, sql := range []string{"DROP DATABASE IF EXISTS " + quote(building) + " WITH (FORCE)",
		"CREATE DATABASE " + quote(building)} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return err
		}
	}
	target := withDatabase(admin, building)
	if err := migrations.Up(ctx, target); err != nil {
		return err
	}
	if extra != nil {
		if err := extra(ctx, target); err != nil {
			return err
		}
	}
	return retryInUse(ctx, func() error {
		_, err := conn.Exec(ctx, "ALTER DATABASE "+quote(building)+" RENAME TO "+quote(template))
		return err
	})
}

func clone(ctx context.Context, t testing.TB, admin, template, database string) string {
	t.Helper()
	err := retryInUse(ctx, func() error {
		return execute(ctx, admin, "CREATE DATABASE "+quote(database)+" TEMPLATE "+quote(template))
	})
	if err != nil {
		t.Fatalf("testkit: clone database: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), setupTimeout)
		defer cancel()
		if err := execute(ctx, admin, "DROP DATABASE IF EXISTS "+quote(database)+
			" WITH (FORCE)"); err != nil {
			t.Errorf("testkit: drop database: %v", err)
		}
	})
	return withDatabase(admin, database)
}

// retryInUse repeats do while PostgreSQL still counts a connection that was just closed (55006).
func retryInUse(ctx context.Context, do func() error) error {
	for {
		err := do()
		var pgErr *pgconn.PgError
		if err == nil || ctx.Err() != nil || !errors.As(err, &pgErr) || pgErr.Code != "55006" {
			return err
		}
	}
}

// locked runs fn under the lock of all tests of the cluster. The lock ends with the connection.
func locked(ctx context.Context, admin string, fn func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, admin)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock($1)`, int64(adminLock)); err != nil {
		return err
	}
	return fn(conn)
}

func execute(ctx context.Context, admin, sql string) error {
	conn, err := pgx.Connect(ctx, admin)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	_, err = conn.Exec(ctx, sql)
	return err
}

func withDatabase(admin, database string) string {
	u, err := url.Parse(admin)
	if err != nil {
		return admin // connecting reports what is wrong with it
	}
	u.Path = "/" + database
	return u.String()
}

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }
