//go:build helm

package helmtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestAlertsTellReleasesApart loads the rules of three releases into one Prometheus: two in one namespace,
// and one of the same name in another. What is true for one release fires once and with its labels, and a
// service that is absent is missed although the other releases have it.
func TestAlertsTellReleasesApart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var files, series []string
	for i, r := range []struct{ name, namespace string }{{"eu", "shop"}, {"us", "shop"}, {"eu", "other"}} {
		file := filepath.Join(dir, fmt.Sprintf("rules-%d.yaml", i))
		if err := os.WriteFile(file, rulesOf(t, r.name, r.namespace), 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, "  - "+file)
		trouble, edge := "0x120", "1x120"
		if i == 0 {
			trouble, edge = "1x120", "_x120"
		}
		release := `",release="` + r.name
		for _, s := range [][2]string{
			{`storefront_relay_consumer_offset_lost_total{topic="signals` + release, trouble},
			{`storefront_build_info{component="edge` + release, edge},
			{`storefront_build_info{component="control` + release, "1x120"},
			{`storefront_build_info{component="engine-relay` + release, "1x120"},
			{`kube_deployment_status_replicas_unavailable{deployment="` + r.name + "-storefront-relay", trouble},
		} {
			series = append(series, fmt.Sprintf(
				`{series: '%s",cluster="c1",namespace="%s"}', values: '%s'}`, s[0], r.namespace, s[1]))
		}
	}
	text := "rule_files:\n" + strings.Join(files, "\n") + "\nevaluation_interval: 1m\ntests:\n" +
		"  - interval: 1m\n    input_series:\n      - " + strings.Join(series, "\n      - ") + `
    promql_expr_test:
      - eval_time: 1h
        expr: >-
          count by (alertname, namespace, release, topic, component, deployment) (ALERTS{alertstate="firing",
          alertname=~"StorefrontOffsetLost|StorefrontServiceAbsent|StorefrontRolloutStuck"})
        exp_samples:
          - labels: '{alertname="StorefrontOffsetLost",namespace="shop",release="eu",topic="signals"}'
            value: 1
          - labels: '{alertname="StorefrontServiceAbsent",namespace="shop",release="eu",component="edge"}'
            value: 1
          - labels: '{alertname="StorefrontRolloutStuck",namespace="shop",deployment="eu-storefront-relay"}'
            value: 1
`
	file := filepath.Join(dir, "test.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	promtool := exec.CommandContext(t.Context(), "promtool", "test", "rules", file)
	if out, err := promtool.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// rulesOf returns the rules of a release.
func rulesOf(t *testing.T, release, namespace string) []byte {
	t.Helper()
	for _, o := range objects(t, renderAs(t, release, namespace, "-f", valueFiles(t)["minimal"], "--set",
		"monitoring.serviceMonitor.enabled=true,monitoring.prometheusRule.enabled=true")) {
		if o.kind() == "PrometheusRule" {
			text, err := yaml.Marshal(o.at("spec"))
			if err != nil {
				t.Fatal(err)
			}
			return text
		}
	}
	t.Fatal("no rules are rendered")
	return nil
}
