//go:build helm

package helmtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// minExplanation is the smallest length of the explanation of a value.
const minExplanation = 15

// TestEveryValueIsDocumented checks that the README explains each value, by itself or as part of a larger
// value.
func TestEveryValueIsDocumented(t *testing.T) {
	t.Parallel()
	chart := filepath.Join(root(t), "helm/storefront")
	text, err := os.ReadFile(filepath.Join(chart, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	explained := map[string]string{}
	rows := regexp.MustCompile("(?m)^\\| ([a-zA-Z.]+) \\| [a-z]+ \\| `.*` \\|(.*)\\|$")
	for _, row := range rows.FindAllStringSubmatch(string(text), -1) {
		explained[row[1]] = strings.TrimSpace(row[2])
	}
	if len(explained) < 200 {
		t.Fatalf("the README's table has %d rows", len(explained))
	}
	for key, why := range explained {
		if len(why) < minExplanation {
			t.Errorf("%s is explained by %q", key, why)
		}
	}
	var values map[string]any
	read(t, filepath.Join(chart, "values.yaml"), &values)
	var walk func(path string, v any)
	walk = func(path string, v any) {
		if _, there := explained[path]; there {
			return
		}
		group, ok := v.(map[string]any)
		if !ok || len(group) == 0 {
			t.Errorf("%s is in values.yaml and not in the README", path)
			return
		}
		for name, inner := range group {
			walk(strings.TrimPrefix(path+"."+name, "."), inner)
		}
	}
	walk("", any(values))
}
