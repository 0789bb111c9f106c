package mutants

import (
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"storefront.internal/deploy/local/project"
)

// TestPatches checks that each mutant has a patch that applies and a scenario, and that each patch has a
// mutant.
func TestPatches(t *testing.T) {
	p := findProject(t)
	files, err := patches.ReadDir("patches")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(List()) || len(files) < 14 {
		t.Errorf("%d patches, %d mutants", len(files), len(List()))
	}
	for _, m := range List() {
		if _, err := overlay(p.Root, t.TempDir(), m); err != nil {
			t.Error(err)
		}
		if _, known := scenarios()[m.Scenario]; !known || m.Description == "" || len(m.Detects) == 0 ||
			len(m.Programs) == 0 {
			t.Errorf("%s is incomplete", m.Name)
		}
	}
}

// TestPatchesCompile compiles all mutants. To save time, it compiles patches of different files together.
func TestPatchesCompile(t *testing.T) {
	p := findProject(t)
	for rest := List(); len(rest) > 0; {
		replace, names, folders := map[string]string{}, []string{}, []string{}
		var later []Mutant
		for _, m := range rest {
			changed, err := patchedFiles(p.Root, t.TempDir(), m)
			if err != nil {
				t.Fatal(err)
			}
			if overlap(replace, changed) {
				later = append(later, m)
				continue
			}
			maps.Copy(replace, changed)
			names = append(names, m.Name)
			for file := range changed {
				folders = append(folders, filepath.Dir(file))
			}
		}
		rest = later
		list := filepath.Join(t.TempDir(), "overlay.json")
		if err := writeOverlay(list, replace); err != nil {
			t.Fatal(err)
		}
		slices.Sort(folders)
		cmd := exec.CommandContext(t.Context(), "go",
			append([]string{"build", "-overlay", list}, slices.Compact(folders)...)...)
		cmd.Dir = p.Root
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %v\n%s", names, err, out)
		}
	}
}

func findProject(t *testing.T) project.Project {
	t.Helper()
	p, err := project.Find()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func overlap(a, b map[string]string) bool {
	for file := range b {
		if _, taken := a[file]; taken {
			return true
		}
	}
	return false
}

func TestChange(t *testing.T) {
	patch := "--- a/x/y.go\n+++ b/x/y.go\n@@ -1,3 +1,4 @@\n one\n-two\n+2\n+2b\n three\n"
	files, err := parse(patch)
	if err != nil || len(files["x/y.go"]) != 1 {
		t.Fatal(files, err)
	}
	got, err := applyHunks("zero\none\ntwo\nthree\nfour\n", files["x/y.go"])
	if err != nil || got != "zero\none\n2\n2b\nthree\nfour\n" {
		t.Errorf("%q %v", got, err)
	}
	for _, text := range []string{"one\nthree\n", strings.Repeat("one\ntwo\nthree\n", 2)} {
		if _, err := applyHunks(text, files["x/y.go"]); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
	if _, err := parse("what\n"); err == nil {
		t.Error("a text that is not a patch was accepted")
	}
	if _, err := overlay(t.TempDir(), t.TempDir(), List()[0]); err == nil {
		t.Error("a patch was applied to nothing")
	}
}
