//go:build helm

package helmtest

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"storefront.internal/deploy/observability/live"
	"storefront.internal/deploy/stack/poll"
)

// A selector of a metric in an alert or a panel.
type selector struct{ where, metric, labels string }

var selectorPattern = regexp.MustCompile(`\b(storefront_[a-z0-9_]+)(?:\{([^}]*)\})?`)

// selectors returns what the alerts, recording rules and panels select, except for panels that may be empty.
func selectors(t *testing.T, chart string) (all []selector) {
	t.Helper()
	add := func(where, expr string) {
		for _, m := range selectorPattern.FindAllStringSubmatch(expr, -1) {
			all = append(all, selector{where, m[1], m[2]})
		}
	}
	text, err := os.ReadFile(filepath.Join(chart, "rules/storefront.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var rules struct {
		Groups []struct {
			Rules []struct{ Record, Alert, Expr string }
		}
	}
	if err := yaml.Unmarshal(text, &rules); err != nil {
		t.Fatal(err)
	}
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			add(r.Alert+r.Record, r.Expr)
		}
	}
	boards, err := live.Dashboards(filepath.Dir(filepath.Dir(chart)))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range boards {
		for _, p := range d.Panels {
			for _, q := range p.Targets {
				if !p.MayBeEmpty() {
					add(d.File+": "+p.Title, q.Expr)
				}
			}
		}
	}
	return all
}

// bornLate are metrics whose series appear with their first event, which is right for these reasons.
func bornLate() map[string]string {
	const ratio = "a ratio over many events, in which the first one does not count"
	return map[string]string{
		"storefront_edge_http_request_duration_seconds":    ratio,
		"storefront_control_http_request_duration_seconds": ratio,
		"storefront_control_webhook_deliveries_total":      ratio,
		"storefront_control_fetched_entities_total":        ratio,
		"storefront_control_fetch_failures_total":          ratio,
		"storefront_control_jobs":                          "a gauge that is absent while there are no jobs",
		"storefront_engine_request_total":                  ratio,
		"storefront_engine_request_seconds":                ratio,
		"storefront_engine_request_deliveries":             ratio,
	}
}

var matcherPattern = regexp.MustCompile(`([a-z_]+)(=~|!~|!=|=)"([^"]*)"`)

// patterns returns what the labels of a series must match: one list for each combination of the alternatives
// that a selector names.
func (s selector) patterns() [][]*regexp.Regexp {
	all := [][]*regexp.Regexp{nil}
	for _, m := range matcherPattern.FindAllStringSubmatch(s.labels, -1) {
		label, op, value := m[1], m[2], m[3]
		if strings.HasPrefix(value, "$") || strings.HasPrefix(op, "!") || label == "le" {
			continue
		}
		alternatives := []string{regexp.QuoteMeta(value)}
		if op == "=~" {
			alternatives = strings.Split(value, "|")
		}
		var longer [][]*regexp.Regexp
		for _, list := range all {
			for _, a := range alternatives {
				pattern := regexp.MustCompile(fmt.Sprintf(`(^|,)%s="(?:%s)"`, label, a))
				longer = append(longer, append(slices.Clone(list), pattern))
			}
		}
		all = longer
	}
	return all
}

var seriesPattern = regexp.MustCompile(`(?m)^(storefront_[a-z0-9_]+)(?:\{(.*)\})? \S+$`)

// missing returns the selectors for which the metrics of the processes have no series.
func missing(all []selector, metrics string) (found []string) {
	late, series := bornLate(), map[string][]string{}
	for _, m := range seriesPattern.FindAllStringSubmatch(metrics, -1) {
		series[m[1]] = append(series[m[1]], m[2])
	}
	for _, s := range all {
		if late[regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(s.metric, "")] != "" {
			continue
		}
		for _, list := range s.patterns() {
			matches := func(labels string) bool {
				return !slices.ContainsFunc(list,
					func(p *regexp.Regexp) bool { return !p.MatchString(labels) })
			}
			if !slices.ContainsFunc(series[s.metric], matches) {
				found = append(found, fmt.Sprintf("%s selects %s{%s}", s.where, s.metric, s.labels))
			}
		}
	}
	return found
}

// checkFreshSeries checks that every series which an alert or a panel selects exists before anything
// happened. A counter that is born at 1 has no increase, and a label that no process has matches nothing.
func checkFreshSeries(t *testing.T, nodes map[string]*node) {
	t.Helper()
	all := selectors(t, filepath.Join(root(t), "helm/storefront"))
	if len(all) < 200 {
		t.Fatalf("only %d selectors were found", len(all))
	}
	var left []string
	// upkeep reads the first values after the start
	_ = poll.Within(t.Context(), time.Minute, "all series exist", func() error {
		var metrics strings.Builder
		for _, n := range nodes {
			status, text := get(t, n.url("ops", "/metrics"))
			if status != http.StatusOK {
				return fmt.Errorf("%s: status %d", n.name, status)
			}
			metrics.WriteString(text)
		}
		if left = missing(all, metrics.String()); len(left) > 0 {
			return fmt.Errorf("%d series do not exist", len(left))
		}
		return nil
	})
	for _, m := range left {
		t.Error(m + ", which no fresh process has")
	}
}

// TestMissingSeriesAreFound checks the check: an alert on a series that is born late, and one on a label that
// no process has.
func TestMissingSeriesAreFound(t *testing.T) {
	t.Parallel()
	const metrics = "storefront_build_info{component=\"edge\",version=\"1\"} 1\n" +
		"storefront_a_total{kind=\"x\"} 0\nstorefront_b 0\n"
	for labels, want := range map[string]int{
		`service="edge"`: 1, `component="edge",namespace=~"$namespace"`: 0, `component=~"edge|control"`: 1,
	} {
		if got := missing([]selector{{"alert", "storefront_build_info", labels}}, metrics); len(got) != want {
			t.Errorf("%s: %v", labels, got)
		}
	}
	for metric, want := range map[string]int{"storefront_a_total": 0, "storefront_b": 0, "storefront_c": 1} {
		if got := missing([]selector{{"alert", metric, ""}}, metrics); len(got) != want {
			t.Errorf("%s: %v", metric, got)
		}
	}
}
