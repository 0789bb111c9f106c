package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const (
	root      = "../.."
	rulesFile = root + "/helm/storefront/rules/storefront.yaml"
)

// rule is a recording rule or an alert.
type rule struct {
	Record, Alert, Expr string
	Labels, Annotations map[string]string
}

func readRules(t *testing.T) []rule {
	t.Helper()
	var file struct {
		Groups []struct{ Rules []rule }
	}
	if err := yaml.Unmarshal([]byte(read(t, rulesFile)), &file); err != nil {
		t.Fatal(err)
	}
	var all []rule
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// names are the metrics and settings that exist: what METRICS.md and CONFIG.md of the services list, the
// recording rules, and metrics of the Go runtime and of Prometheus.
type names struct {
	metrics  map[string]string // name to type
	settings map[string]bool
}

func readNames(t *testing.T) names {
	t.Helper()
	metricRow := regexp.MustCompile("(?m)^\\| `(storefront_[a-z0-9_]+)` \\| ([a-z]+) \\|")
	settingRow := regexp.MustCompile("(?m)^\\| `([A-Z][A-Z0-9_]+)` \\|")
	n := names{metrics: map[string]string{}, settings: map[string]bool{}}
	for _, service := range []string{"edge", "control", "engine-relay"} {
		for _, m := range metricRow.FindAllStringSubmatch(read(t, filepath.Join(root, service, "METRICS.md")),
			-1) {
			n.metrics[m[1]] = m[2]
		}
		for _, m := range settingRow.FindAllStringSubmatch(read(t, filepath.Join(root, service, "CONFIG.md")),
			-1) {
			n.settings[m[1]] = true
		}
	}
	// in PostgreSQL
	for _, role := range []string{"storefront_edge", "storefront_control", "storefront_relay"} {
		n.metrics[role] = "role"
	}
	for _, r := range readRules(t) {
		if r.Record != "" {
			n.metrics[r.Record] = "gauge"
		}
	}
	return n
}

// unknown returns the metrics and settings of a text that do not exist.
func (n names) unknown(text string) []string {
	var unknown []string
	metric := regexp.MustCompile(`\b(?:storefront_[a-z0-9_]*[a-z0-9]|storefront:[a-z0-9_:]+)`)
	for _, name := range metric.FindAllString(text, -1) {
		if !n.isMetric(name) {
			unknown = append(unknown, name)
		}
	}
	for _, name := range regexp.MustCompile(`\b(?:EDGE|CONTROL|RELAY)_[A-Z0-9_]*[A-Z0-9]`).FindAllString(text,
		-1) {
		if !n.settings[name] {
			unknown = append(unknown, name)
		}
	}
	return unknown
}

// isMetric accepts a histogram only with the suffix of one of its series.
func (n names) isMetric(name string) bool {
	if kind, ok := n.metrics[name]; ok {
		return kind != "histogram"
	}
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if base, cut := strings.CutSuffix(name, suffix); cut && n.metrics[base] == "histogram" {
			return true
		}
	}
	return false
}
