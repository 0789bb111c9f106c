package web

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestBuildMakesAScriptAndAModuleOfEachEntry(t *testing.T) {
	t.Parallel()
	files, err := Build("../../edge/sdk")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"storefront", "auto", "element", "debug"} {
		for _, suffix := range []string{".iife.js", ".mjs"} {
			if files[name+suffix] == nil {
				t.Errorf("no %s%s", name, suffix)
			}
		}
	}
	if !bytes.Contains(files["storefront.iife.js"], []byte("storefront-signals")) {
		t.Error("storefront.iife.js sends no signals")
	}
}

// The edge serves what this source makes: `make sdk` writes it. A version that was released is not changed;
// then edge/sdk/package.json gets the next one.
func TestTheEdgeServesWhatIsBuilt(t *testing.T) {
	t.Parallel()
	built, err := Build(sdk)
	if err != nil {
		t.Fatal(err)
	}
	version, err := Version(sdk)
	if err != nil {
		t.Fatal(err)
	}
	served, err := Read(ServedDir("../..", version))
	if err != nil {
		t.Fatal(err)
	}
	if !maps.EqualFunc(built, served, bytes.Equal) {
		t.Errorf("the files of version %s are stale: run `make sdk`", version)
	}
	readme, err := os.ReadFile(filepath.Join(sdk, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if tag := built.Tag("https://storefront.example", version, "storefront.iife.js"); !strings.Contains(
		string(readme), tag) {
		t.Errorf("the README does not have this element, which `make sdk` prints:\n%s", tag)
	}
}

func TestWriteReplacesWhatWasThere(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "0.1.0")
	for _, files := range []Files{{"a.js": []byte("a"), "old.js": nil}, {"a.js": []byte("b")}} {
		if err := files.Write(dir); err != nil {
			t.Fatal(err)
		}
		got, err := Read(dir)
		if err != nil {
			t.Fatal(err)
		}
		if !maps.EqualFunc(got, files, bytes.Equal) {
			t.Errorf("%q, want %q", got, files)
		}
	}
}
