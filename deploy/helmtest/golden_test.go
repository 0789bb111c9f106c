//go:build helm

package helmtest

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden renders anew")

// Every set of values renders to what is in helm/golden, so that a change of a template is seen as what it does.
func TestGoldenRenders(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for name, values := range valueFiles(t) {
		path := filepath.Join(root(t), "helm/golden", name+".yaml")
		known[path] = true
		got := shorten(render(t, "-f", values))
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Errorf("%v (make helm-golden writes it)", err)
			continue
		}
		if line, a, b := firstDifference(string(want), got); line > 0 {
			t.Errorf("%s differs from line %d (make helm-golden writes it anew):\n- %s\n+ %s", path, line, a, b)
		}
	}
	golden, err := filepath.Glob(filepath.Join(root(t), "helm/golden/*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range golden {
		if !known[path] {
			t.Errorf("%s has no values in helm/storefront/ci", path)
		}
	}
}

// shorten leaves out the text of dashboards and alerts, which have files and tests of their own.
func shorten(text string) string {
	text = regexp.MustCompile(`(?m)^  ([a-z0-9-]+\.json): .*$`).ReplaceAllString(text, "  $1: (dashboards/$1)")
	return regexp.MustCompile(`(?ms)^(kind: PrometheusRule\n.*?\nspec:\n).*?(\n---|\z)`).ReplaceAllString(text, "$1  (rules/storefront.yaml)$2")
}

// firstDifference is the number of the first line that is not the same, or 0.
func firstDifference(want, got string) (int, string, string) {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(a), len(b)) {
		var x, y string
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		if x != y || i >= len(a) || i >= len(b) {
			return i + 1, x, y
		}
	}
	return 0, "", ""
}
