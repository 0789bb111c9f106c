package pg_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"storefront.internal/shared/pg"
	"storefront.internal/shared/settings"
	"storefront.internal/shared/testkit"
)

func TestClassOfStates(t *testing.T) {
	t.Parallel()
	state := func(code, constraint string) error {
		return fmt.Errorf("store: %w", &pgconn.PgError{Code: code, ConstraintName: constraint})
	}
	for _, tt := range []struct {
		err  error
		want pg.ErrorClass
	}{
		{state("22021", ""), pg.Poison}, {state("22P05", ""), pg.Poison}, {state("23505", "pk"), pg.Poison},
		{state("23514", "check"), pg.Poison},
		{state("23514", ""), pg.Schema}, {state("42P01", ""), pg.Schema}, {state("42501", ""), pg.Schema},
		{state("3F000", ""), pg.Schema},
		{state("08006", ""), pg.Transient}, {state("40001", ""), pg.Transient},
		{state("53300", ""), pg.Transient}, {state("55P03", ""), pg.Transient},
		{state("57014", ""), pg.Transient}, {state("25006", ""), pg.Transient},
		{state("23503", "fk"), pg.Other}, {state("54001", ""), pg.Other}, {state("XX000", ""), pg.Other},
		{context.DeadlineExceeded, pg.Transient}, {io.ErrUnexpectedEOF, pg.Transient},
		{&net.OpError{Err: errors.New("reset")}, pg.Transient},
		{pg.ErrCommitUnknown, pg.Transient}, {errors.New("cannot encode"), pg.Other}, {nil, pg.Other},
	} {
		if got := pg.Class(tt.err); got != tt.want {
			t.Errorf("%v: %s, want %s", tt.err, got, tt.want)
		}
	}
}

func open(t *testing.T, url string, s settings.Postgres) *pgxpool.Pool {
	t.Helper()
	s.DatabaseURL = settings.Secret(url)
	pool, err := pg.Open(t.Context(), s, "pg-test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func TestClassOfRealErrors(t *testing.T) {
	t.Parallel()
	pool := open(t, testkit.PostgresEmpty(t),
		settings.Postgres{StatementTimeout: 300 * time.Millisecond, LockTimeout: 50 * time.Millisecond})
	setup := `CREATE TABLE part (day date, n int CONSTRAINT positive CHECK (n > 0), body json) PARTITION BY RANGE (day);
		CREATE TABLE part_1 PARTITION OF part FOR VALUES FROM ('2026-01-01') TO ('2026-01-02')`
	if _, err := pool.Exec(t.Context(), setup); err != nil {
		t.Fatal(err)
	}
	for sql, want := range map[string]pg.ErrorClass{
		`INSERT INTO part VALUES ('2030-01-01', 1)`:            pg.Schema,
		`INSERT INTO part VALUES ('2026-01-01', -1)`:           pg.Poison,
		`INSERT INTO part VALUES ('2026-01-01', 1, '{"a":}')`:  pg.Poison,
		`INSERT INTO part_1 VALUES ('2030-01-01', 1)`:          pg.Schema,
		`INSERT INTO nowhere VALUES (1)`:                       pg.Schema,
		`SELECT pg_sleep(5)`:                                   pg.Transient,
		`SELECT pg_terminate_backend(pg_backend_pid())`:        pg.Transient,
		`DO $$ BEGIN RAISE SQLSTATE '40001'; END $$`:           pg.Transient,
		`DO $$ BEGIN RAISE EXCEPTION 'a rule of ours'; END $$`: pg.Other,
	} {
		_, err := pool.Exec(t.Context(), sql)
		if err == nil || pg.Class(err) != want {
			t.Errorf("%s: %v is %s, want %s", sql, err, pg.Class(err), want)
		}
	}
	down := open(t, "postgres://user@127.0.0.1:1/none", settings.Postgres{})
	if _, err := down.Exec(t.Context(), `SELECT 1`); pg.Class(err) != pg.Transient {
		t.Errorf("no server: %v is %s", err, pg.Class(err))
	}
}

func TestOpenSetsAllLimits(t *testing.T) {
	t.Parallel()
	pool := open(t, testkit.PostgresEmpty(t),
		settings.Postgres{MaxConns: 3, StatementTimeout: 2 * time.Second, LockTimeout: time.Second,
			IdleInTxTimeout: 15 * time.Second})
	for name, want := range map[string]string{
		"statement_timeout": "2s", "lock_timeout": "1s", "idle_in_transaction_session_timeout": "15s",
		"application_name": "pg-test", "TimeZone": "UTC",
	} {
		var got string
		if err := pool.QueryRow(t.Context(), `SELECT current_setting($1)`, name).Scan(&got); err != nil ||
			got != want {
			t.Errorf("%s = %q, want %q (%v)", name, got, want, err)
		}
	}
	if _, err := pg.Open(t.Context(), settings.Postgres{DatabaseURL: "postgres://u:hunter2@[bad/d"},
		"x"); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v", err)
	}
}

func count(t *testing.T, pool *pgxpool.Pool) (n int) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM own`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestInTxCommitsOrRollsBack(t *testing.T) {
	t.Parallel()
	pool := open(t, testkit.PostgresEmpty(t), settings.Postgres{MaxConns: 1})
	if _, err := pool.Exec(t.Context(),
		`CREATE TABLE own (n int UNIQUE DEFERRABLE INITIALLY DEFERRED)`); err != nil {
		t.Fatal(err)
	}
	boom := errors.New("boom")
	insert := func(ctx context.Context, tx pgx.Tx, n int) error {
		_, err := tx.Exec(ctx, `INSERT INTO own VALUES ($1)`, n)
		return err
	}
	if err := pg.InTx(t.Context(), pool,
		func(tx pgx.Tx) error { return insert(t.Context(), tx, 1) }); err != nil || count(t, pool) != 1 {
		t.Fatal(err)
	}
	if err := pg.InTx(t.Context(), pool,
		func(tx pgx.Tx) error { return errors.Join(insert(t.Context(), tx, 2), boom) }); !errors.Is(err,
		boom) {
		t.Fatal(err)
	}
	func() {
		defer func() { _ = recover() }()
		_ = pg.InTx(t.Context(), pool, func(tx pgx.Tx) error { _ = insert(t.Context(), tx, 3); panic("x") })
	}()
	ctx, cancel := context.WithCancel(t.Context())
	if err := pg.InTx(ctx, pool,
		func(tx pgx.Tx) error { defer cancel(); return insert(ctx, tx, 4) }); err == nil {
		t.Fatal("committed under an ended context")
	}
	err := pg.InTx(t.Context(), pool, func(tx pgx.Tx) error { return insert(t.Context(), tx, 1) })
	if pg.SQLState(err) != "23505" || errors.Is(err, pg.ErrCommitUnknown) {
		t.Fatalf("a COMMIT that the server refused: %v", err)
	}
	if n := count(t, pool); n != 1 {
		t.Fatalf("%d rows", n)
	}
}

func TestCommitWithoutAnswerIsUnknown(t *testing.T) {
	t.Parallel()
	pool := open(t, testkit.PostgresEmpty(t), settings.Postgres{})
	setup := `CREATE TABLE own (n int);
		CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$;
		CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON own DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION die()`
	if _, err := pool.Exec(t.Context(), setup); err != nil {
		t.Fatal(err)
	}
	runs := 0
	err := pg.RetryTx(t.Context(), pool, func(tx pgx.Tx) error {
		runs++
		_, err := tx.Exec(t.Context(), `INSERT INTO own VALUES (1)`)
		return err
	})
	if !errors.Is(err, pg.ErrCommitUnknown) || pg.Class(err) != pg.Transient || runs != 1 {
		t.Errorf("%v after %d runs", err, runs)
	}
}

func TestRetryTxRepeatsAfterDeadlocks(t *testing.T) {
	t.Parallel()
	pool := open(t, testkit.PostgresEmpty(t), settings.Postgres{MaxConns: 4})
	if _, err := pool.Exec(t.Context(),
		`CREATE TABLE own (n int PRIMARY KEY, v int); INSERT INTO own VALUES (1, 0), (2, 0)`); err != nil {
		t.Fatal(err)
	}
	var both, wg sync.WaitGroup
	both.Add(2)
	for first := 1; first <= 2; first++ {
		wg.Go(func() {
			met := false
			err := pg.RetryTx(t.Context(), pool, func(tx pgx.Tx) error {
				if _, err := tx.Exec(t.Context(), `UPDATE own SET v = v + 1 WHERE n = $1`,
					first); err != nil {
					return err
				}
				if !met { // each holds one row and wants the other's: a deadlock for sure
					met = true
					both.Done()
					both.Wait()
				}
				_, err := tx.Exec(t.Context(), `UPDATE own SET v = v + 1 WHERE n = $1`, 3-first)
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	var sum int
	if err := pool.QueryRow(t.Context(), `SELECT sum(v) FROM own`).Scan(&sum); err != nil || sum != 4 {
		t.Errorf("sum %d, %v", sum, err)
	}
}
