//go:build helm

package helmtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestDashboardsAndAlertsAreComplete checks that the release contains each dashboard as it is in the chart's
// files and every rule, and that each selector of a rule names the release's namespace.
func TestDashboardsAndAlertsAreComplete(t *testing.T) {
	t.Parallel()
	chart := filepath.Join(root(t), "helm/storefront")
	found, rendered := map[string]string{}, ""
	for _, o := range objects(t, render(t, "-f", valueFiles(t)["full"])) {
		if o.kind() == "PrometheusRule" {
			text, err := yaml.Marshal(o.at("spec"))
			if err != nil {
				t.Fatal(err)
			}
			rendered = string(text)
			checkRenderedRules(t, rendered, o.at("metadata", "namespace"), "sf")
		}
		if o.component() == "dashboard" {
			data, _ := o.at("data").(map[string]any)
			for name, text := range data {
				found[name], _ = text.(string)
			}
		}
	}
	rules, err := os.ReadFile(filepath.Join(chart, "rules/storefront.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"alert: ", "record: "} {
		in, out := strings.Count(string(rules), kind), strings.Count(rendered, kind)
		if in != out || in == 0 {
			t.Errorf("%d of %d rules with %q are rendered", out, in, kind)
		}
	}
	files, err := filepath.Glob(filepath.Join(chart, "dashboards/*.json"))
	if err != nil || len(found) != len(files) {
		t.Fatalf("%d dashboards of %d files, %v", len(found), len(files), err)
	}
	for _, path := range files {
		if text, err := os.ReadFile(path); err != nil || found[filepath.Base(path)] != string(text) {
			t.Errorf("%s differs from the file: %v", filepath.Base(path), err)
		}
	}
}

// checkRenderedRules checks the rules with promtool, and the selectors of their expressions.
func checkRenderedRules(t *testing.T, text string, namespace any, release string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	promtool := exec.CommandContext(t.Context(), "promtool", "check", "rules", file)
	if out, err := promtool.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	var rules struct {
		Groups []struct {
			Rules []struct{ Alert, Record, Expr string }
		}
	}
	if err := yaml.Unmarshal([]byte(text), &rules); err != nil {
		t.Fatal(err)
	}
	metric := regexp.MustCompile(`\b(storefront[_:]|kube_|process_)[a-zA-Z0-9_:]+(\{namespace="([^"]*)"(,release="([^"]*)")?)?`)
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			for _, m := range metric.FindAllStringSubmatch(r.Expr, -1) {
				if m[3] != namespace || m[5] != release && m[1] != "kube_" {
					t.Errorf("%s%s: %s does not select %s in %v", r.Alert, r.Record, m[0], release, namespace)
				}
			}
			if strings.Contains(r.Expr, "by (namespace") || strings.Contains(r.Expr, "on (namespace") {
				t.Errorf("%s%s does not keep clusters apart", r.Alert, r.Record)
			}
		}
	}
}
