// Command observability writes what operators look at, made from Go: the alerting rules with their tests, and the dashboards. `make generate` runs it.
//
// It owns where the files lie. It refuses to be part of a running system.
package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"storefront.internal/deploy/observability/files"
)

//go:generate go run . ../..

func main() { os.Exit(run(os.Args[1:], os.Stderr)) }

func run(args []string, errs io.Writer) int {
	if len(args) != 1 {
		fmt.Fprintln(errs, "observability ROOT   write rules, their tests and dashboards below the root of the repository")
		return 2
	}
	all, err := files.All()
	if err != nil {
		fmt.Fprintln(errs, "observability:", err)
		return 1
	}
	for name, text := range all {
		path := filepath.Join(args[0], filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			fmt.Fprintln(errs, "observability:", err)
			return 1
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			fmt.Fprintln(errs, "observability:", err)
			return 1
		}
	}
	return 0
}
