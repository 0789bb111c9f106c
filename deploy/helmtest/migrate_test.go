//go:build helm

package helmtest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

// migrate runs the container of the migration Job.
func (s *stores) migrate(t *testing.T, r release) {
	t.Helper()
	if out, err := s.tryMigrate(t, r); err != nil {
		t.Fatalf("migrate: %v\n%s", err, out)
	}
}

func (s *stores) tryMigrate(t *testing.T, r release) (string, error) {
	t.Helper()
	c := r.container(t, "Job", "sf-storefront-migrate")
	cmd := exec.CommandContext(t.Context(), binary(t, "migrate"), c.args...)
	cmd.Env = c.environ()
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestConcurrentMigrations checks that two concurrent migrations create the schema, and that two more change
// nothing: no object of the catalog and no row of the two tables with versions is written again.
func TestConcurrentMigrations(t *testing.T) {
	t.Parallel()
	s := newStores(t)
	r := s.release(t, s.externalValues(t))
	race := func() {
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				if out, err := s.tryMigrate(t, r); err != nil {
					t.Errorf("migrate: %v\n%s", err, out)
				}
			})
		}
		wg.Wait()
	}
	race()
	first := s.digest(t)
	race()
	if second := s.digest(t); second != first {
		t.Errorf("the second run changed the database:\n%s\n%s", first, second)
	}
	s.execIn(t, s.superuser(t), `ALTER TABLE goose_db_version ADD COLUMN seen integer`)
	if s.digest(t) == first {
		t.Error("the digest does not depend on the columns")
	}
}

// digest covers all objects of our schemas in the catalog (ids, files, privileges) and the rows with
// versions.
func (s *stores) digest(t *testing.T) string {
	t.Helper()
	c, err := pgx.Connect(t.Context(), s.superuser(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(context.Background()) }()
	const ours = ` JOIN pg_namespace n
		ON n.nspname IN ('public', 'control', 'relay', 'delivery') AND n.oid = `
	var parts []string
	for name, query := range map[string]string{
		"relations": `SELECT concat_ws(' ', c.oid, relname, relfilenode, relacl) ` +
			`FROM pg_class c` + ours + `relnamespace`,
		"columns": `SELECT concat_ws(' ', attrelid, attname, attnum, atttypid, attacl, a.xmin) ` +
			`FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid` + ours + `relnamespace`,
		"functions": `SELECT concat_ws(' ', p.oid, proname, prosrc, proacl) ` +
			`FROM pg_proc p` + ours + `pronamespace`,
		"constraints": `SELECT concat_ws(' ', c.oid, conname, c.xmin) ` +
			`FROM pg_constraint c` + ours + `connamespace`,
		"versions": `SELECT concat_ws(' ', g, xmin) FROM goose_db_version g`,
		"jobs":     `SELECT concat_ws(' ', r, xmin) FROM control.river_migration r`,
	} {
		var digest string
		var rows int
		if err := c.QueryRow(t.Context(),
			`SELECT count(*), coalesce(md5(string_agg(x, ',' ORDER BY x)), '') FROM (`+query+`) AS q(x)`,
		).Scan(&rows, &digest); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if rows == 0 {
			t.Errorf("%s: no rows", name)
		}
		parts = append(parts, name+" "+digest)
	}
	return strings.Join(slices.Sorted(slices.Values(parts)), "\n")
}

// TestPreviousReleaseRunsOnTheNewestSchema checks that the binaries of the previous release become ready with
// the schema of the present one. They get the variables of the chart that they know, because a rollback
// restores the old chart too.
func TestPreviousReleaseRunsOnTheNewestSchema(t *testing.T) {
	t.Parallel()
	s := newStores(t)
	r := s.release(t, s.externalValues(t))
	s.migrate(t, r)
	tree, bin := previousRelease(t)
	for name, service := range map[string]string{"control": "control", "relay": "engine-relay",
		"edge": "edge"} {
		t.Run(name, func(t *testing.T) {
			reference, err := os.ReadFile(filepath.Join(tree, service, "CONFIG.md"))
			if err != nil {
				t.Fatal(err)
			}
			c := r.container(t, "Deployment", "sf-storefront-"+name)
			for variable := range c.env {
				if strings.HasPrefix(variable, prefixes[name]) &&
					!strings.Contains(string(reference), "| `"+variable+"` |") {
					delete(c.env, variable)
				}
			}
			c.start(t, filepath.Join(bin, service))
		})
	}
}

// previousRelease returns a work tree of the commit PREVIOUS and the folder of its binaries.
func previousRelease(t *testing.T) (tree, bin string) {
	t.Helper()
	commit := os.Getenv("PREVIOUS")
	if commit == "" {
		t.Fatal("PREVIOUS names the release before this one: use make helm-test")
	}
	tree, bin = filepath.Join(t.TempDir(), "previous"), t.TempDir()
	git := func(args ...string) {
		cmd := exec.CommandContext(context.Background(), "git", args...)
		cmd.Dir = root(t)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v (a shallow clone has no earlier release)\n%s", args, err, out)
		}
	}
	git("worktree", "add", "--detach", "--force", tree, commit)
	t.Cleanup(func() { git("worktree", "remove", "--force", tree) })
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", bin+"/",
		"storefront.internal/edge", "storefront.internal/control", "storefront.internal/engine-relay")
	cmd.Dir = tree
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", commit, err, out)
	}
	return tree, bin
}
