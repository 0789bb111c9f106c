package sdkfiles

import (
	"bytes"
	"compress/gzip"
	"io"
	"strings"
	"testing"
)

// Every version has the core as a script and as a module, and the compressed bytes are those of the file.
func TestLoad(t *testing.T) {
	t.Parallel()
	files, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	versions := map[string]bool{}
	for path, f := range files {
		version, _, _ := strings.Cut(path, "/")
		versions[version] = true
		z, err := gzip.NewReader(bytes.NewReader(f.Gzip))
		if err != nil {
			t.Fatal(err)
		}
		if plain, err := io.ReadAll(z); err != nil || !bytes.Equal(plain, f.Body) || len(f.Body) == 0 {
			t.Errorf("%s: %d bytes, %d of them compressed, %v", path, len(f.Body), len(plain), err)
		}
		if len(f.ETag) != 34 || f.ETag[0] != '"' {
			t.Errorf("%s: ETag %s", path, f.ETag)
		}
	}
	if len(versions) == 0 {
		t.Error("there is no version")
	}
	for version := range versions {
		for _, name := range []string{"storefront.iife.js", "storefront.mjs"} {
			if files[version+"/"+name] == nil {
				t.Errorf("version %s has no %s", version, name)
			}
		}
	}
}
