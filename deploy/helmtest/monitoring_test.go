//go:build helm

package helmtest

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestDashboardsAndAlertsAreUnchanged checks that the release contains each dashboard and all rules of the
// chart's files. Only the address of the runbooks may differ.
func TestDashboardsAndAlertsAreUnchanged(t *testing.T) {
	t.Parallel()
	chart := filepath.Join(root(t), "helm/storefront")
	rules, err := os.ReadFile(filepath.Join(chart, "rules/storefront.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{"", "https://runbooks.example.com/"} {
		text := string(rules)
		if url != "" {
			text = strings.ReplaceAll(text, "deploy/runbooks/", url)
		}
		var want any
		if err := yaml.UnmarshalStrict([]byte(text), &want); err != nil {
			t.Fatal(err)
		}
		found := map[string]string{}
		args := []string{"-f", valueFiles(t)["full"], "--set", "monitoring.prometheusRule.runbookUrl=" + url}
		for _, o := range objects(t, render(t, args...)) {
			if o.kind() == "PrometheusRule" {
				found["rules"] = "" // there is one
				if !reflect.DeepEqual(o.at("spec"), want) {
					t.Errorf("with the runbooks at %q the PrometheusRule differs from the file", url)
				}
			}
			if o.component() == "dashboard" {
				data, _ := o.at("data").(map[string]any)
				for name, text := range data {
					found[name], _ = text.(string)
				}
			}
		}
		files, err := filepath.Glob(filepath.Join(chart, "dashboards/*.json"))
		if err != nil || len(found) != len(files)+1 {
			t.Fatalf("%d dashboards and rules of %d files, %v", len(found), len(files)+1, err)
		}
		for _, path := range files {
			if text, err := os.ReadFile(path); err != nil || found[filepath.Base(path)] != string(text) {
				t.Errorf("%s differs from the file: %v", filepath.Base(path), err)
			}
		}
	}
}
