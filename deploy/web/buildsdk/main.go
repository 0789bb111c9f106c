// Command buildsdk builds the browser SDK of a repository: into the folder of its version that the edge
// serves, and into edge/sdk/dist for npm and for tests. It prints the sizes and integrity hashes of the
// files, and the script element of a page.
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
	if len(args) != 1 {
		return fmt.Errorf("usage: buildsdk <folder of the repository>")
	}
	root := args[0]
	sdk := filepath.Join(root, "edge", "sdk")
	version, err := web.Version(sdk)
	if err != nil {
		return err
	}
	files, err := web.Build(sdk)
	if err != nil {
		return err
	}
	for _, dir := range []string{filepath.Join(sdk, "dist"), web.ServedDir(root, version)} {
		if err := files.Write(dir); err != nil {
			return err
		}
	}
	if err := files.Report(out); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "Version %s. In a page:\n%s\n", version,
		files.Tag("https://storefront.example", version, "storefront.iife.js"))
	return err
}
