package alerts

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

const header = "# Made by `make generate` from deploy/observability/alerts; a test fails when it is stale.\n"

// RulesFile is the text of the rules, as Prometheus and the operator read them.
func RulesFile() string {
	var b strings.Builder
	b.WriteString(header + "groups:\n")
	for _, g := range Groups() {
		fmt.Fprintf(&b, "  - name: %s\n    rules:\n", g.Name)
		for _, r := range g.Records {
			fmt.Fprintf(&b, "      - record: %s\n        expr: %s\n", r.Name, quote(r.Expr))
		}
		for _, a := range g.Alerts {
			a.write(&b)
		}
	}
	return b.String()
}

func (a Alert) write(b *strings.Builder) {
	fmt.Fprintf(b, "      - alert: %s\n        expr: %s\n", a.Name, quote(a.Expr))
	if a.For != "" {
		fmt.Fprintf(b, "        for: %s\n", a.For)
	}
	fmt.Fprintf(b, "        labels: %s\n", flow(a.labels()))
	fmt.Fprintf(b, "        annotations:\n")
	for _, k := range []string{"summary", "description", "runbook_url"} {
		fmt.Fprintf(b, "          %s: %s\n", k, quote(a.annotations()[k]))
	}
}

func (a Alert) labels() map[string]string {
	labels := map[string]string{"severity": string(a.Severity)}
	maps.Copy(labels, a.Labels)
	return labels
}

func (a Alert) annotations() map[string]string {
	return map[string]string{
		"summary": a.Summary, "description": a.Description, "runbook_url": RunbookBase + a.Runbook + "#" + strings.ToLower(a.Name),
	}
}

// TestsFile is the text of promtool's tests of alerts on causes, one for each; rules is the path of the rules from there.
func TestsFile(rules string) string { return testsFile(rules, "5m", "1m", false) }

// LevelTestsFile is that of the service levels, whose windows are days long: it takes fewer samples, and looks more rarely.
func LevelTestsFile(rules string) string { return testsFile(rules, "30m", "2m", true) }

func testsFile(rules, every, interval string, levels bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, header+"rule_files:\n  - %s\nevaluation_interval: %s\ntests:\n", rules, every)
	for _, g := range Groups() {
		if strings.HasPrefix(g.Name, levelPrefix) != levels {
			continue
		}
		seen := map[string]bool{}
		for _, a := range g.Alerts {
			if !seen[a.Name] {
				seen[a.Name] = true
				a.writeTest(&b, g, interval)
			}
		}
	}
	return b.String()
}

func (a Alert) writeTest(b *strings.Builder, g Group, interval string) {
	after := a.Fires.After
	if after == "" {
		after = "1h"
	}
	fmt.Fprintf(b, "  - interval: %s\n    input_series:\n", interval)
	for _, s := range a.Fires.Series {
		series, values, _ := cutSeries(s)
		fmt.Fprintf(b, "      - series: %s\n        values: %s\n", quote(series), quote(values))
	}
	fmt.Fprintf(b, "    alert_rule_test:\n      - eval_time: %s\n        alertname: %s\n        exp_alerts:\n", after, a.Name)
	for _, labels := range a.Fires.Labels {
		fmt.Fprintf(b, "          - exp_labels: %s\n            exp_annotations:\n", flow(labels))
		expected := a
		for _, other := range g.Alerts { // the same name may stand for several windows
			if other.Name == a.Name && maps.Equal(subset(other.labels(), labels), other.labels()) {
				expected = other
			}
		}
		for _, k := range []string{"summary", "description", "runbook_url"} {
			fmt.Fprintf(b, "              %s: %s\n", k, quote(expected.annotations()[k]))
		}
	}
}

// cutSeries splits a series from its values at the first space outside of its labels.
func cutSeries(s string) (series, values string, ok bool) {
	if end := strings.IndexByte(s, '}'); end >= 0 {
		return s[:end+1], strings.TrimSpace(s[end+1:]), true
	}
	return strings.Cut(s, " ")
}

// subset are the members of all whose names are in names.
func subset(all, names map[string]string) map[string]string {
	out := map[string]string{}
	for k := range all {
		if v, ok := names[k]; ok {
			out[k] = v
		}
	}
	return out
}

// quote makes a single-quoted YAML scalar.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

func flow(m map[string]string) string {
	parts := make([]string, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, k+": "+quote(m[k]))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}
