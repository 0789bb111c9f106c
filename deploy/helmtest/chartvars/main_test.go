package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"storefront.internal/deploy/local/project"
)

// TestSchemaIsFresh checks that `make generate` was run.
func TestSchemaIsFresh(t *testing.T) {
	t.Parallel()
	p, err := project.Find()
	if err != nil {
		t.Fatal(err)
	}
	schema, err := os.ReadFile(filepath.Join(p.Root, "helm", "storefront", "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	fresh := schema
	for _, c := range components() {
		names, err := c.names(p.Root)
		if err != nil {
			t.Fatal(err)
		}
		if fresh, err = enumerate(fresh, c.definition, names); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(fresh, schema) {
		t.Error("values.schema.json is stale: run make generate")
	}
}

// TestExcludedSettingsExist checks that the excluded names are settings of the services.
func TestExcludedSettingsExist(t *testing.T) {
	t.Parallel()
	p, err := project.Find()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range components() {
		text, err := os.ReadFile(filepath.Join(p.Root, c.reference))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range c.set {
			if !strings.Contains(string(text), "| `"+c.prefix+name+"` |") {
				t.Errorf("%s has no %s%s", c.reference, c.prefix, name)
			}
		}
	}
}

func TestEnumerateRejectsOtherSchemas(t *testing.T) {
	t.Parallel()
	for _, schema := range []string{`{}`, `{"edgeConfig": {"type": "object"}}`} {
		if _, err := enumerate([]byte(schema), "edgeConfig", []string{"EDGE_A"}); err == nil {
			t.Errorf("%s was accepted", schema)
		}
	}
}
