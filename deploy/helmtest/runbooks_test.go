//go:build helm

package helmtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// statements returns the SQL of the runbooks: what psql is given with -c, and inline code that begins like a
// statement.
func statements(t *testing.T) map[string][]string {
	t.Helper()
	books, err := filepath.Glob(filepath.Join(root(t), "deploy/runbooks/*.md"))
	if err != nil || len(books) == 0 {
		t.Fatalf("%d runbooks, %v", len(books), err)
	}
	found := map[string][]string{}
	patterns := []*regexp.Regexp{
		regexp.MustCompile(`-c "((?:SELECT|UPDATE|DELETE|INSERT|WITH) [^"]+)"`),
		regexp.MustCompile(`-c '((?:SELECT|UPDATE|DELETE|INSERT|WITH) [^']+)'`),
		regexp.MustCompile("`((?:SELECT|UPDATE|DELETE|INSERT|WITH) [^`]+)`"),
	}
	for _, book := range books {
		text, err := os.ReadFile(book)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range patterns {
			for _, m := range p.FindAllStringSubmatch(string(text), -1) {
				found[filepath.Base(book)] = append(found[filepath.Base(book)], m[1])
			}
		}
	}
	return found
}

// TestRunbookCommands plans every SQL statement of the runbooks on a migrated database, and runs those of
// control's commands that only read, with the environment of the pod in which `kubectl exec` runs them.
func TestRunbookCommands(t *testing.T) {
	t.Parallel()
	s := newStores(t)
	r := s.release(t, s.externalValues(t))
	s.migrate(t, r)
	checkRunbookStatements(t, s.superuser(t))
	c := r.container(t, "Deployment", "sf-storefront-control")
	for _, args := range [][]string{{"migrate", "status"}, {"privacy", "list"}} {
		cmd := exec.CommandContext(t.Context(), binary(t, "control"), args...)
		cmd.Env = c.environ()
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("control %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// checkRunbookStatements plans every SQL statement of the runbooks on the migrated database.
func checkRunbookStatements(t *testing.T, databaseURL string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	placeholders := strings.NewReplacer("'ID'", "NULL", "= …", "= NULL", "'con_…'", "NULL", "'key_…'", "NULL",
		"'obs_…'", "NULL", "(PID)", "(NULL)")
	n := 0
	for book, all := range statements(t) {
		for _, statement := range all {
			n++
			if _, err := conn.Exec(t.Context(), "EXPLAIN "+placeholders.Replace(statement)); err != nil {
				t.Errorf("%s: %v: %s", book, err, statement)
			}
		}
	}
	if n < 10 {
		t.Errorf("only %d statements were found", n)
	}
	if _, err := conn.Exec(t.Context(),
		"EXPLAIN SELECT FROM control.observations WHERE status = 'quarantined'"); err == nil {
		t.Error("a column that does not exist is not noticed")
	}
}

// TestRunbooksRunProgramsOfTheImages checks the programs behind `kubectl exec`. A released image has the
// binary of its service in PATH, under the service's name, and nothing else.
func TestRunbooksRunProgramsOfTheImages(t *testing.T) {
	t.Parallel()
	books, err := filepath.Glob(filepath.Join(root(t), "deploy/runbooks/*.md"))
	if err != nil {
		t.Fatal(err)
	}
	programs := map[string]string{"edge": "edge", "control": "control", "relay": "engine-relay"}
	command, n := regexp.MustCompile(`exec deploy/\S+-(edge|control|relay) -- (\S+)`), 0
	for _, book := range books {
		text, err := os.ReadFile(book)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range command.FindAllStringSubmatch(string(text), -1) {
			n++
			if m[2] != programs[m[1]] {
				t.Errorf("%s: the image of %s has no %s: %s", filepath.Base(book), m[1], m[2], m[0])
			}
		}
	}
	if n < 4 {
		t.Errorf("only %d commands were found", n)
	}
}
