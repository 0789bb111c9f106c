package migrations_test

import (
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"storefront.internal/shared/pg/migrations"
	"storefront.internal/shared/testkit"
)

func TestUpBesideOtherMigrators(t *testing.T) {
	t.Parallel()
	url := testkit.PostgresEmpty(t)
	pool := testkit.Pool(t, url)
	if current, want, err := migrations.Version(t.Context(), pool); err != nil || current != 0 || want == 0 {
		t.Fatalf("before: %d of %d, %v", current, want, err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if err := migrations.Up(t.Context(), url); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if current, want, err := migrations.Version(t.Context(), pool); err != nil || current != want {
		t.Fatalf("after: %d of %d, %v", current, want, err)
	}
}

func TestVersionTellsWhatIsMissing(t *testing.T) {
	t.Parallel()
	url := testkit.Postgres(t)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	exec := func(sql string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	exec(`INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, true)`)
	if current, want, err := migrations.Version(t.Context(), conn); err != nil || current != 99999 ||
		current < want {
		t.Errorf("newer release: %d of %d, %v", current, want, err)
	}
	exec(`DELETE FROM goose_db_version WHERE version_id = 2`)
	if current, _, err := migrations.Version(t.Context(), conn); err != nil || current != 1 {
		t.Errorf("a gap: %d, %v", current, err)
	}
}
