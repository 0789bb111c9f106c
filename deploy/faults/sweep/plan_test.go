package sweep

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"storefront.internal/deploy/faults/scenario"
	"storefront.internal/deploy/local/project"
)

// Every crash point of the code is in the plan, six times: a point that is added later is swept too, or this
// test says so.
func TestPlan(t *testing.T) {
	p, err := project.Find()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(p.Root, "shared", "failpoint", "doc.go"))
	if err != nil {
		t.Fatal(err)
	}
	var named []string
	for _, m := range regexp.MustCompile(`(?m)^\t\w+ += "([a-z_.]+)"`).FindAllStringSubmatch(string(text),
		-1) {
		named = append(named, m[1])
	}
	if len(named) < 25 {
		t.Fatalf("%d points: %v", len(named), named)
	}
	planned := map[string]int{}
	for _, r := range Plan() {
		var programs []string
		for _, c := range r {
			planned[c.Point]++
			if slices.Contains(programs, c.Program) {
				t.Errorf("%v kills two of %s", r, c.Program)
			}
			programs = append(programs, c.Program)
			if c.Hit != r[0].Hit || c.Policy != r[0].Policy {
				t.Errorf("%v is of several kinds", r)
			}
		}
	}
	for _, name := range named {
		if planned[name] != 6 {
			t.Errorf("%s is planned %d times", name, planned[name])
		}
	}
	if len(planned) != len(named) {
		t.Errorf("%d points are planned, %d are there", len(planned), len(named))
	}
	for program, points := range Points() {
		if program != scenario.Edge && program != scenario.Relay && program != scenario.Control ||
			len(points) == 0 {
			t.Errorf("%s %v", program, points)
		}
	}
}
