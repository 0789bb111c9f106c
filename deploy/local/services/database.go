package services

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// EnsureDatabase makes the database when the server has none of that name.
func EnsureDatabase(ctx context.Context, server, database string) error {
	return withConn(ctx, server, func(c *pgx.Conn) error {
		var there bool
		if err := c.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", database).Scan(&there); err != nil || there {
			return err
		}
		_, err := c.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{database}.Sanitize())
		return err
	})
}

// EnsureLogins makes the login roles edge, relay and control, members of the group roles that the migrations made. An empty
// password is left alone. Roles belong to the whole server, so two stacks that do this at once take turns.
func EnsureLogins(ctx context.Context, database, password string) error {
	return withConn(ctx, database, func(c *pgx.Conn) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtext('storefront login roles'))"); err != nil {
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
	var there bool
	if err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1)", role).Scan(&there); err != nil {
		return err
	}
	if !there {
		if _, err := tx.Exec(ctx, fmt.Sprintf("CREATE ROLE %s LOGIN IN ROLE storefront_%s", role, role)); err != nil {
			return err
		}
	}
	if password == "" {
		return nil
	}
	// A utility statement takes no parameters; format quotes the value on the server.
	var statement string
	if err := tx.QueryRow(ctx, "SELECT format('ALTER ROLE %I PASSWORD %L', $1::text, $2::text)", role, password).Scan(&statement); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, statement)
	return err
}

func withConn(ctx context.Context, url string, do func(*pgx.Conn) error) error {
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	return errors.Join(do(c), c.Close(context.WithoutCancel(ctx)))
}
