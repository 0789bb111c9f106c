package web

import (
	"bytes"
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
