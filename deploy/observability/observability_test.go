package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"storefront.internal/deploy/observability/live"
)

func TestRulesNameOnlyWhatExists(t *testing.T) {
	t.Parallel()
	n := readNames(t)
	var tests string
	for _, file := range promtoolTests(t) {
		tests += read(t, file)
	}
	for _, r := range readRules(t) {
		if unknown := n.unknown(r.Expr); unknown != nil {
			t.Errorf("%s%s: unknown names %v", r.Record, r.Alert, unknown)
		}
		if r.Alert == "" {
			continue
		}
		if !strings.HasPrefix(r.Alert, "Storefront") || r.Annotations["summary"] == "" ||
			r.Annotations["description"] == "" {
			t.Errorf("%s has no summary, no description or another prefix", r.Alert)
		}
		if !slices.Contains([]string{"critical", "warning", "info"}, r.Labels["severity"]) {
			t.Errorf("%s: severity %q", r.Alert, r.Labels["severity"])
		}
		if !strings.Contains(tests, "alertname: "+r.Alert+"\n") {
			t.Errorf("%s has no test in deploy/prometheus", r.Alert)
		}
		path, anchor, _ := strings.Cut(r.Annotations["runbook_url"], "#")
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil || anchor != strings.ToLower(r.Alert) ||
			!strings.Contains(string(text), "\n## "+r.Alert+"\n") {
			t.Errorf("%s has no heading at %s: %v", r.Alert, r.Annotations["runbook_url"], err)
		}
	}
}

// TestRunbooksNameOnlyWhatExists checks metrics, settings, routes, headings and links.
func TestRunbooksNameOnlyWhatExists(t *testing.T) {
	t.Parallel()
	n, alerts := readNames(t), map[string]bool{}
	for _, r := range readRules(t) {
		alerts[r.Alert] = true
	}
	openapi := read(t, root+"/control/openapi.yaml")
	books, err := filepath.Glob(root + "/deploy/runbooks/*.md")
	if err != nil || len(books) < 7 {
		t.Fatalf("%d runbooks, %v", len(books), err)
	}
	route := regexp.MustCompile(`\$CONTROL(/internal/v1/[a-zA-Z0-9_/$…-]+)`)
	parameter := strings.NewReplacer("/con_…", "/{connection_id}", "/key_…", "/{api_key_id}", "/obs_…",
		"/{observation_id}",
		"/bsr_…", "/{bootstrap_run_id}", "/parked/17", "/parked/{parked_id}", "/parked/$id",
		"/parked/{parked_id}")
	for _, book := range books {
		text, name := read(t, book), filepath.Base(book)
		// CONTROL_TOKENS and the like in the README are shell variables of the reader.
		if unknown := n.unknown(text); unknown != nil && name != "README.md" {
			t.Errorf("%s: unknown names %v", name, unknown)
		}
		for _, m := range route.FindAllStringSubmatch(text, -1) {
			if !strings.Contains(openapi, "  "+parameter.Replace(m[1])+":\n") {
				t.Errorf("%s: no route %s", name, m[1])
			}
		}
		for _, heading := range regexp.MustCompile(`(?m)^## (.+)$`).FindAllStringSubmatch(text, -1) {
			if !alerts[heading[1]] && !aboutNoAlerts(name) {
				t.Errorf("%s: no alert %s", name, heading[1])
			}
		}
		for _, link := range regexp.MustCompile(`\]\(([a-z]+\.md)`).FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(root, "deploy/runbooks", link[1])); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestDashboardsAreComplete(t *testing.T) {
	t.Parallel()
	n := readNames(t)
	all, err := live.Dashboards(root)
	if err != nil || len(all) != 4 {
		t.Fatalf("%d dashboards, %v", len(all), err)
	}
	for _, d := range all {
		if d.File != d.UID+".json" {
			t.Errorf("%s: uid %s", d.File, d.UID)
		}
		if d.Templating.List[0].Name != "datasource" || d.Templating.List[0].Type != "datasource" {
			t.Errorf("%s: no variable for the data source", d.File)
		}
		ids, titles := map[int]bool{}, map[string]bool{}
		for i, p := range d.Panels {
			at := fmt.Sprintf("%s: %q", d.File, p.Title)
			if ids[p.ID] || p.ID == 0 || titles[p.Title] {
				t.Errorf("%s: id %d or title is used twice", at, p.ID)
			}
			ids[p.ID], titles[p.Title] = true, true
			if p.GridPos.X+p.GridPos.W > 24 || p.GridPos.W <= 0 || p.GridPos.H <= 0 {
				t.Errorf("%s is outside of the grid: %+v", at, p.GridPos)
			}
			for _, other := range d.Panels[:i] {
				if overlap(p, other) {
					t.Errorf("%s overlaps %q", at, other.Title)
				}
			}
			if p.Type != "row" {
				checkQueries(t, n, at, p)
			}
		}
	}
}

// aboutNoAlerts: some runbooks are about faults, symptoms, sizes and releases.
func aboutNoAlerts(name string) bool {
	return slices.Contains([]string{"failure-matrix.md", "releases.md", "capacity.md", "troubleshooting.md"},
		name)
}

func overlap(p, o live.Panel) bool {
	a, b := p.GridPos, o.GridPos
	return a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H
}

func checkQueries(t *testing.T, n names, at string, p live.Panel) {
	t.Helper()
	if p.FieldConfig.Defaults.Unit == "" || p.Datasource.UID != "${datasource}" || len(p.Targets) == 0 {
		t.Errorf("%s has no unit, no data source or no queries", at)
	}
	for _, q := range p.Targets {
		if unknown := n.unknown(q.Expr); unknown != nil || q.Datasource.UID != "${datasource}" {
			t.Errorf("%s: unknown names %v, data source %s", at, unknown, q.Datasource.UID)
		}
		if !strings.Contains(q.Expr, "$namespace") || !strings.Contains(q.Expr, "$cluster") ||
			!strings.Contains(q.Expr, "$release") {
			t.Errorf("%s does not select by cluster, namespace and release: %s", at, q.Expr)
		}
	}
}

func TestUnknownNamesAreFound(t *testing.T) {
	t.Parallel()
	text := "rate(storefront_no_such_total[5m]) storefront:no_such storefront_engine_request_seconds " +
		"storefront_engine_request_seconds_bucket EDGE_NO_SUCH EDGE_LISTEN"
	want := "[storefront_no_such_total storefront:no_such storefront_engine_request_seconds EDGE_NO_SUCH]"
	if got := readNames(t).unknown(text); fmt.Sprint(got) != want {
		t.Errorf("got %v", got)
	}
}

// TestEveryMetricIsShown: a metric that is on no panel and in no rule helps nobody.
func TestEveryMetricIsShown(t *testing.T) {
	t.Parallel()
	text := read(t, rulesFile)
	boards, err := filepath.Glob(root + "/helm/storefront/dashboards/*.json")
	if err != nil || len(boards) != 4 {
		t.Fatalf("%d dashboards, %v", len(boards), err)
	}
	for _, board := range boards {
		text += read(t, board)
	}
	for name, kind := range readNames(t).metrics {
		if kind == "role" {
			continue
		}
		if !regexp.MustCompile(`\b` + name + `(_bucket|_sum|_count)?\b`).MatchString(text) {
			t.Errorf("%s is on no panel and in no rule", name)
		}
	}
}

func promtoolTests(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(root + "/deploy/prometheus/*_test.yaml")
	if err != nil || len(files) < 3 {
		t.Fatalf("%d files of tests, %v", len(files), err)
	}
	return files
}

// TestAlerts runs promtool's unit tests, and checks that they fail when an alert does not fire.
func TestAlerts(t *testing.T) {
	t.Parallel()
	promtool := func(args ...string) (string, error) {
		out, err := exec.CommandContext(t.Context(), "promtool", args...).CombinedOutput()
		return string(out), err
	}
	if _, err := exec.LookPath("promtool"); err != nil {
		if os.Getenv("REQUIRE_REAL") != "" {
			t.Fatal("promtool is missing; it is part of Prometheus")
		}
		t.Skip("SKIPPED: promtool is missing, the alerts are NOT tested")
	}
	const tests = root + "/deploy/prometheus/"
	for _, args := range [][]string{
		{"check", "rules", rulesFile}, append([]string{"test", "rules"}, promtoolTests(t)...),
	} {
		if out, err := promtool(args...); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
	rules, err := filepath.Abs(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(read(t, tests+"causes_test.yaml"), "../../helm/storefront/rules/storefront.yaml",
		rules, 1)
	file := filepath.Join(t.TempDir(), "broken_test.yaml")
	// the first series is that of StorefrontDeliveryBlocked
	broken := strings.Replace(text, "1x1440", "0x1440", 1)
	if err := os.WriteFile(file, []byte(broken), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := promtool("test", "rules", file); err == nil ||
		!strings.Contains(out, "StorefrontDeliveryBlocked") {
		t.Errorf("the test passes although the alert does not fire: %v\n%s", err, out)
	}
}

// TestPanelsSayWhatTheyShow checks that each panel has a description.
func TestPanelsSayWhatTheyShow(t *testing.T) {
	t.Parallel()
	boards, err := live.Dashboards(root)
	if err != nil || len(boards) == 0 {
		t.Fatal(len(boards), err)
	}
	for _, d := range boards {
		for _, p := range d.Panels {
			if len(p.Targets) > 0 && p.Description == "" {
				t.Errorf("%s: %s has no description", d.File, p.Title)
			}
		}
	}
}
