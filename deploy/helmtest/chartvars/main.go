// Command chartvars writes the names of the services' settings into values.schema.json of the chart, so that
// Helm rejects a misspelt one. It changes only the enumerations of that file. The names come from
// CONFIG.md of each service, without secrets and without settings that the chart sets itself.
//
//go:generate go run .
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"storefront.internal/deploy/local/project"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "chartvars:", err)
		os.Exit(1)
	}
}

func run() error {
	p, err := project.Find()
	if err != nil {
		return err
	}
	path := filepath.Join(p.Root, "helm", "storefront", "values.schema.json")
	schema, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for _, c := range components() {
		names, err := c.names(p.Root)
		if err != nil {
			return err
		}
		if schema, err = enumerate(schema, c.definition, names); err != nil {
			return err
		}
	}
	return os.WriteFile(path, schema, 0o644)
}
