package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"storefront.internal/deploy/local/project"
)

// The enumerations are those of the present references; `make generate` writes them anew.
func TestSchemaKnowsTheVariables(t *testing.T) {
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

// What the chart sets is a variable of the service, or the list here is stale.
func TestWhatTheChartSetsExists(t *testing.T) {
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
				t.Errorf("%s does not know %s%s", c.reference, c.prefix, name)
			}
		}
	}
}

func TestEnumerateRefusesAnotherShape(t *testing.T) {
	t.Parallel()
	for _, schema := range []string{`{}`, `{"edgeConfig": {"type": "object"}}`} {
		if _, err := enumerate([]byte(schema), "edgeConfig", []string{"EDGE_A"}); err == nil {
			t.Errorf("%s was taken", schema)
		}
	}
}
