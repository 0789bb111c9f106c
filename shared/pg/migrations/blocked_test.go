package migrations_test

import (
	"context"
	"testing"
	"testing/fstest"
	"time"

	"storefront.internal/shared/pg/migrations"
	"storefront.internal/shared/testkit"
)

// TestUpBehindALongReader checks that a migration that waits for a long transaction does not hold up writers,
// and that it is done when the transaction has ended.
func TestUpBehindALongReader(t *testing.T) {
	t.Parallel()
	url := testkit.PostgresEmpty(t)
	pool, ctx := testkit.Pool(t, url), t.Context()
	files := fstest.MapFS{"00001_one.sql": {Data: []byte("-- +goose Up\nCREATE TABLE busy (n int);\n")}}
	if err := migrations.UpFiles(ctx, url, files, time.Second); err != nil {
		t.Fatal(err)
	}
	reader, err := pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reader.Exec(ctx, "SELECT FROM busy"); err != nil {
		t.Fatal(err)
	}
	files["00002_two.sql"] = &fstest.MapFile{
		Data: []byte("-- +goose Up\nALTER TABLE busy ADD COLUMN m int;\n")}
	done := make(chan error, 1)
	go func() { done <- migrations.UpFiles(ctx, url, files, time.Second) }()
	for waits := false; !waits; {
		if err := pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_locks
			WHERE relation = 'busy'::regclass AND NOT granted)`).Scan(&waits); err != nil {
			t.Fatal(err)
		}
	}
	writes, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if _, err := pool.Exec(writes, "INSERT INTO busy VALUES (1)"); err != nil {
		t.Errorf("a writer waits behind the migration: %v", err)
	}
	if err := reader.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := pool.Exec(ctx, "SELECT m FROM busy"); err != nil {
		t.Error(err)
	}
}
