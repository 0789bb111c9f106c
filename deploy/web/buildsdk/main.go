// Command buildsdk builds the browser SDK into a folder and prints the sizes and integrity hashes of its
// files.
package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"storefront.internal/deploy/web"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) != 2 {
		return fmt.Errorf("usage: buildsdk <folder of the SDK> <folder for the files>")
	}
	files, err := web.Build(args[0])
	if err != nil {
		return err
	}
	if err := os.MkdirAll(args[1], 0o755); err != nil {
		return err
	}
	for name, code := range files {
		if err := os.WriteFile(filepath.Join(args[1], name), code, 0o644); err != nil {
			return err
		}
	}
	return files.Report(out)
}
