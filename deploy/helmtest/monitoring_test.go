//go:build helm

package helmtest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// The release carries every dashboard and every alert of the chart's files, unchanged.
func TestDashboardsAndAlertsArriveUnchanged(t *testing.T) {
	t.Parallel()
	chart := filepath.Join(root(t), "helm/storefront")
	var rules map[string]any
	read(t, filepath.Join(chart, "rules/storefront.yaml"), &rules)
	files, err := filepath.Glob(filepath.Join(chart, "dashboards/*.json"))
	if err != nil {
		t.Fatal(err)
	}
	alerts, dashboards := 0, map[string]string{}
	for _, o := range objects(t, render(t, "-f", valueFiles(t)["full"])) {
		switch {
		case o.kind() == "PrometheusRule":
			alerts++
			if !reflect.DeepEqual(o.at("spec"), any(rules)) {
				t.Error("the PrometheusRule is not the file")
			}
		case o.component() == "dashboard":
			if o.str("metadata", "labels", "grafana_dashboard") != "1" || o.annotation("grafana_folder") == "" {
				t.Errorf("%s will not be found: %v", o.name(), o.at("metadata"))
			}
			data, _ := o.at("data").(map[string]any)
			for name, text := range data {
				dashboards[name] = text.(string)
			}
		}
	}
	if alerts != 1 || len(dashboards) != len(files) {
		t.Errorf("%d PrometheusRules and %d dashboards of %d", alerts, len(dashboards), len(files))
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
