// Package reference owns what the services say of themselves in METRICS.md and CONFIG.md, and finds the names that a text or a query speaks of. Tests hold dashboards, rules and runbooks to it.
package reference

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Names are known metrics and variables.
type Names struct {
	Metrics   map[string]string // name → type
	Variables map[string]bool
}

// ours are metrics of the Go runtime, of the process and of Prometheus that dashboards and rules use.
func ours() []string {
	return []string{"process_cpu_seconds_total", "process_resident_memory_bytes", "process_start_time_seconds", "go_goroutines", "go_gc_duration_seconds", "up", "ALERTS"}
}

var (
	metricRow   = regexp.MustCompile("^\\| `(storefront_[a-z0-9_]+)` \\| ([a-z]+) \\|")
	variableRow = regexp.MustCompile("^\\| `([A-Z][A-Z0-9_]+)` \\|")
	metricName  = regexp.MustCompile(`\b(?:storefront_[a-z0-9_]*[a-z0-9]|storefront:[a-z0-9_:]+)`)
	variable    = regexp.MustCompile(`\b(?:EDGE|CONTROL|RELAY)_[A-Z0-9_]*[A-Z0-9]`)
)

// Read reads the services' references below the root of the repository.
func Read(root string) (*Names, error) {
	n := &Names{Metrics: map[string]string{}, Variables: map[string]bool{}}
	for _, name := range ours() {
		n.Metrics[name] = "gauge"
	}
	for _, service := range []string{"edge", "control", "engine-relay"} {
		metrics, err := os.ReadFile(filepath.Join(root, service, "METRICS.md"))
		if err != nil {
			return nil, fmt.Errorf("reference of metrics: %w", err)
		}
		for line := range strings.Lines(string(metrics)) {
			if m := metricRow.FindStringSubmatch(line); m != nil {
				n.Metrics[m[1]] = m[2]
			}
		}
		config, err := os.ReadFile(filepath.Join(root, service, "CONFIG.md"))
		if err != nil {
			return nil, fmt.Errorf("reference of settings: %w", err)
		}
		for line := range strings.Lines(string(config)) {
			if m := variableRow.FindStringSubmatch(line); m != nil {
				n.Variables[m[1]] = true
			}
		}
	}
	return n, nil
}

// Record makes a recording rule's name known.
func (n *Names) Record(name string) { n.Metrics[name] = "gauge" }

// Unknown returns the metrics and variables that a text names and nobody has. A histogram is named with a suffix.
func (n *Names) Unknown(text string) []string {
	var unknown []string
	for _, name := range metricName.FindAllString(text, -1) {
		if !n.knows(name) {
			unknown = append(unknown, name)
		}
	}
	for _, name := range variable.FindAllString(text, -1) {
		if !n.Variables[name] {
			unknown = append(unknown, name)
		}
	}
	return unknown
}

func (n *Names) knows(name string) bool {
	switch name {
	case "storefront_edge", "storefront_control", "storefront_relay": // roles of PostgreSQL
		return true
	}
	if kind, ok := n.Metrics[name]; ok {
		return kind != "histogram"
	}
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if base, cut := strings.CutSuffix(name, suffix); cut && n.Metrics[base] == "histogram" {
			return true
		}
	}
	return false
}
