package files

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"storefront.internal/deploy/observability/alerts"
	"storefront.internal/deploy/observability/board"
	"storefront.internal/deploy/observability/dashboards"
	"storefront.internal/deploy/observability/reference"
)

const root = "../../.."

func names(t *testing.T) *reference.Names {
	t.Helper()
	n, err := reference.Read(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range alerts.Groups() {
		for _, r := range g.Records {
			n.Record(r.Name)
		}
	}
	return n
}

func TestGeneratedFilesAreFresh(t *testing.T) {
	t.Parallel()
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range all {
		got, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("%s is stale; run make generate", name)
		}
	}
}

// TestRulesNameWhatThereIs: every metric, severity, summary, runbook and heading.
func TestRulesNameWhatThereIs(t *testing.T) {
	t.Parallel()
	n := names(t)
	group := map[string]bool{}
	for _, g := range alerts.Groups() {
		if group[g.Name] {
			t.Errorf("two groups %s", g.Name)
		}
		group[g.Name] = true
		for _, r := range g.Records {
			if unknown := n.Unknown(r.Expr); unknown != nil {
				t.Errorf("%s: %v", r.Name, unknown)
			}
		}
		for _, a := range g.Alerts {
			if unknown := n.Unknown(a.Expr); unknown != nil {
				t.Errorf("%s: %v", a.Name, unknown)
			}
			if !strings.HasPrefix(a.Name, "Storefront") || a.Summary == "" || a.Description == "" || len(a.Fires.Labels) == 0 {
				t.Errorf("%s lacks something", a.Name)
			}
			switch a.Severity {
			case alerts.Page, alerts.Ticket, alerts.Info:
			default:
				t.Errorf("%s: severity %q", a.Name, a.Severity)
			}
			text, err := os.ReadFile(filepath.Join(root, "deploy/runbooks", a.Runbook))
			if err != nil || !strings.Contains(string(text), "\n## "+a.Name+"\n") {
				t.Errorf("%s has no heading in %s: %v", a.Name, a.Runbook, err)
			}
		}
	}
}

// TestRunbooksNameWhatThereIs: metrics, settings, operations and the headings of alerts.
func TestRunbooksNameWhatThereIs(t *testing.T) {
	t.Parallel()
	n, known := names(t), map[string]bool{}
	for _, g := range alerts.Groups() {
		for _, a := range g.Alerts {
			known[a.Name] = true
		}
	}
	surface, err := os.ReadFile(filepath.Join(root, "control/openapi.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	books, err := filepath.Glob(filepath.Join(root, "deploy/runbooks/*.md"))
	if err != nil || len(books) < 7 {
		t.Fatalf("%d runbooks, %v", len(books), err)
	}
	path, id := regexp.MustCompile(`\$CONTROL(/internal/v1/[a-zA-Z0-9_/…-]+)`), regexp.MustCompile(`/(con|key|obs|bsr)_…`)
	parameter := strings.NewReplacer("/con_…", "/{connection_id}", "/key_…", "/{api_key_id}", "/obs_…", "/{observation_id}", "/bsr_…", "/{bootstrap_run_id}")
	for _, book := range books {
		text, err := os.ReadFile(book)
		if err != nil {
			t.Fatal(err)
		}
		// CONTROL_TOKENS and the like of the README are shell variables of the reader, …_X stands for each service's.
		if unknown := n.Unknown(string(text)); unknown != nil && filepath.Base(book) != "README.md" {
			t.Errorf("%s: %v", filepath.Base(book), unknown)
		}
		for _, m := range path.FindAllStringSubmatch(string(text), -1) {
			want := parameter.Replace(m[1])
			if id.MatchString(want) || !strings.Contains(string(surface), "  "+want+":\n") {
				t.Errorf("%s: no operation %s", filepath.Base(book), m[1])
			}
		}
		for _, heading := range regexp.MustCompile(`(?m)^## (.+)$`).FindAllStringSubmatch(string(text), -1) {
			if !known[heading[1]] {
				t.Errorf("%s: no alert %s", filepath.Base(book), heading[1])
			}
		}
		for _, link := range regexp.MustCompile(`\]\(([a-z]+\.md)`).FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join(root, "deploy/runbooks", link[1])); err != nil {
				t.Errorf("%s: %v", filepath.Base(book), err)
			}
		}
	}
}

type place struct{ X, Y, W, H int }

func (p place) overlaps(o place) bool {
	return p.X < o.X+o.W && o.X < p.X+p.W && p.Y < o.Y+o.H && o.Y < p.Y+p.H
}

func TestDashboardsAreSound(t *testing.T) {
	t.Parallel()
	n, uids := names(t), map[string]bool{}
	for file, d := range dashboards.All() {
		if uids[d.UID] || file != d.UID+".json" {
			t.Errorf("%s: uid %s", file, d.UID)
		}
		uids[d.UID] = true
		text, err := d.JSON()
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			Templating struct{ List []struct{ Name, Type string } }
			Panels     []struct {
				ID         int
				Type       string
				Title      string
				GridPos    place
				Datasource struct{ UID string }
				Targets    []struct {
					Expr       string
					Datasource struct{ UID string }
				}
				FieldConfig struct{ Defaults struct{ Unit string } }
			}
		}
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatal(err)
		}
		if got.Templating.List[0].Name != "datasource" || got.Templating.List[0].Type != "datasource" {
			t.Errorf("%s: no variable for the data source", file)
		}
		ids, titles := map[int]bool{}, map[string]bool{}
		for i, p := range got.Panels {
			if ids[p.ID] || p.ID == 0 || titles[p.Title] {
				t.Errorf("%s: panel %d %q is there twice", file, p.ID, p.Title)
			}
			ids[p.ID], titles[p.Title] = true, true
			if p.GridPos.X+p.GridPos.W > 24 || p.GridPos.W <= 0 || p.GridPos.H <= 0 {
				t.Errorf("%s: %q leaves the grid: %+v", file, p.Title, p.GridPos)
			}
			for _, other := range got.Panels[:i] {
				if p.GridPos.overlaps(other.GridPos) {
					t.Errorf("%s: %q lies over %q", file, p.Title, other.Title)
				}
			}
			if p.Type == "row" {
				continue
			}
			if p.FieldConfig.Defaults.Unit == "" || p.Datasource.UID != "${datasource}" || len(p.Targets) == 0 {
				t.Errorf("%s: %q lacks unit, data source or queries", file, p.Title)
			}
			for _, q := range p.Targets {
				if unknown := n.Unknown(q.Expr); unknown != nil || q.Datasource.UID != "${datasource}" {
					t.Errorf("%s: %q: %v", file, p.Title, unknown)
				}
				if strings.Contains(q.Expr, "{@") || strings.Count(q.Expr, "$namespace") == 0 {
					t.Errorf("%s: %q does not select by namespace: %s", file, p.Title, q.Expr)
				}
			}
		}
	}
	if len(uids) != 4 {
		t.Errorf("%d dashboards", len(uids))
	}
}

// TestUnknownNamesAreFound: the tests above can fail.
func TestUnknownNamesAreFound(t *testing.T) {
	t.Parallel()
	n := names(t)
	text := "rate(storefront_no_such_total[5m]) storefront:no_such storefront_engine_request_seconds storefront_engine_request_seconds_bucket EDGE_NO_SUCH EDGE_LISTEN"
	if got := n.Unknown(text); fmt.Sprint(got) != "[storefront_no_such_total storefront:no_such storefront_engine_request_seconds EDGE_NO_SUCH]" {
		t.Errorf("got %v", got)
	}
	if !(place{0, 0, 8, 8}).overlaps(place{7, 7, 8, 8}) || (place{0, 0, 8, 8}).overlaps(place{8, 0, 8, 8}) {
		t.Error("overlaps are not judged")
	}
	if got := (board.Query{Expr: `a{@,b="c"} / d{@}`}).Expand(); got != `a{namespace=~"$namespace",b="c"} / d{namespace=~"$namespace"}` {
		t.Error(got)
	}
}

// promtool runs Prometheus' own judge.
func promtool(t *testing.T, args ...string) (string, error) {
	t.Helper()
	path, err := exec.LookPath("promtool")
	if err != nil {
		if os.Getenv("REQUIRE_REAL") != "" {
			t.Fatal("promtool is missing; it comes with Prometheus")
		}
		t.Skip("promtool is missing: the rules are NOT tested")
	}
	out, err := exec.CommandContext(t.Context(), path, args...).CombinedOutput()
	return string(out), err
}

// TestEveryAlertFires: promtool plays each alert's input.
func TestEveryAlertFires(t *testing.T) {
	t.Parallel()
	if out, err := promtool(t, "check", "rules", filepath.Join(root, Rules)); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, file := range []string{Tests, LevelTests} {
		if out, err := promtool(t, "test", "rules", filepath.Join(root, file)); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
	// An input that does not suffice is noticed: the test of promtool's tests.
	text, err := os.ReadFile(filepath.Join(root, Tests))
	if err != nil {
		t.Fatal(err)
	}
	head, rest, _ := strings.Cut(string(text), "tests:\n")
	first, _, _ := strings.Cut(rest[1:], "\n  - interval")
	rules, err := filepath.Abs(filepath.Join(root, Rules))
	if err != nil {
		t.Fatal(err)
	}
	planted := strings.Replace(head, "../../"+Rules, rules, 1) + "tests:\n " + strings.Replace(first, "1x1440", "0x1440", 1) + "\n"
	file := filepath.Join(t.TempDir(), "planted_test.yaml")
	if err := os.WriteFile(file, []byte(planted), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := promtool(t, "test", "rules", file); err == nil || !strings.Contains(out, "StorefrontDeliveryBlocked") {
		t.Errorf("an alert that does not fire passes: %v\n%s", err, out)
	}
}
