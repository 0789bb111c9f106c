//go:build helm

package helmtest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// The release carries every dashboard and every alert of the chart's files, unchanged but for where runbooks are read.
func TestDashboardsAndAlertsArriveUnchanged(t *testing.T) {
	t.Parallel()
	const runbooks = "https://runbooks.example.com/"
	chart := filepath.Join(root(t), "helm/storefront")
	text, err := os.ReadFile(filepath.Join(chart, "rules/storefront.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var plain, led map[string]any
	for into, text := range map[*map[string]any]string{&plain: string(text), &led: strings.ReplaceAll(string(text), "deploy/runbooks/", runbooks)} {
		if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob(filepath.Join(chart, "dashboards/*.json"))
	if err != nil {
		t.Fatal(err)
	}
	full := valueFiles(t)["full"]
	for url, want := range map[string]any{"": plain, runbooks: led} {
		alerts := 0
		for _, o := range objects(t, render(t, "-f", full, "--set", "monitoring.prometheusRule.runbookUrl="+url)) {
			if o.kind() == "PrometheusRule" {
				alerts++
				if !reflect.DeepEqual(o.at("spec"), want) {
					t.Errorf("with %q the PrometheusRule is not the file", url)
				}
			}
		}
		if alerts != 1 {
			t.Errorf("%d PrometheusRules", alerts)
		}
	}
	dashboards := map[string]string{}
	for _, o := range objects(t, render(t, "-f", full)) {
		if o.component() == "dashboard" {
			if o.str("metadata", "labels", "grafana_dashboard") != "1" || o.annotation("grafana_folder") == "" {
				t.Errorf("%s will not be found: %v", o.name(), o.at("metadata"))
			}
			data, _ := o.at("data").(map[string]any)
			for name, text := range data {
				dashboards[name] = text.(string)
			}
		}
	}
	if len(dashboards) != len(files) {
		t.Errorf("%d dashboards of %d", len(dashboards), len(files))
	}
	for _, path := range files {
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := dashboards[filepath.Base(path)]; got != string(want) || !json.Valid([]byte(got)) {
			t.Errorf("%s does not arrive as it is", path)
		}
	}
}
