package stack

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Exec runs statements in a database, each in a transaction of its own.
func Exec(ctx context.Context, database string, statements ...string) error {
	return withConn(ctx, database, func(c *pgx.Conn) error {
		for _, s := range statements {
			if _, err := c.Exec(ctx, s); err != nil {
				return fmt.Errorf("%s: %w", s, err)
			}
		}
		return nil
	})
}

// EnsureDatabase creates the database of a URL when its server has none of that name.
func EnsureDatabase(ctx context.Context, database string) error {
	err := withConn(ctx, database, func(*pgx.Conn) error { return nil })
	var missing *pgconn.PgError
	if !errors.As(err, &missing) || missing.Code != "3D000" { // invalid_catalog_name
		return err
	}
	u, err := url.Parse(database)
	if err != nil {
		return fmt.Errorf("database URL: %w", err)
	}
	server, err := WithDatabase(database, "postgres")
	if err != nil {
		return err
	}
	return Exec(ctx, server, "CREATE DATABASE "+pgx.Identifier{strings.TrimPrefix(u.Path, "/")}.Sanitize())
}

// EnsureLogins creates the login roles edge, relay and control, members of the group roles that the
// migrations made, and sets their password unless it is empty. Roles belong to the whole server, so stacks
// that do this at the same time wait for each other.
func EnsureLogins(ctx context.Context, database, password string) error {
	return withConn(ctx, database, func(c *pgx.Conn) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtext('storefront login roles'))")
			if err != nil {
				return err
			}
			for _, role := range []string{"edge", "relay", "control"} {
				if err := ensureLogin(ctx, tx, role, password); err != nil {
					return fmt.Errorf("role %s: %w", role, err)
				}
			}
			return nil
		})
	})
}

func ensureLogin(ctx context.Context, tx pgx.Tx, role, password string) error {
	var exists bool
	row := tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1)", role)
	if err := row.Scan(&exists); err != nil {
		return err
	}
	if !exists {
		_, err := tx.Exec(ctx, fmt.Sprintf("CREATE ROLE %s LOGIN IN ROLE storefront_%s", role, role))
		if err != nil {
			return err
		}
	}
	if password == "" {
		return nil
	}
	// A utility statement takes no parameters; format quotes the value on the server.
	var statement string
	err := tx.QueryRow(ctx, "SELECT format('ALTER ROLE %I PASSWORD %L', $1::text, $2::text)", role,
		password).Scan(&statement)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, statement)
	return err
}

// WithDatabase is the URL of another database of the same server.
func WithDatabase(server, database string) (string, error) {
	u, err := url.Parse(server)
	if err != nil {
		return "", fmt.Errorf("database URL: %w", err)
	}
	u.Path = "/" + database
	return u.String(), nil
}

func withConn(ctx context.Context, url string, do func(*pgx.Conn) error) error {
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	return errors.Join(do(c), c.Close(context.WithoutCancel(ctx)))
}
