package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"storefront.internal/deploy/faults/mutants"
	"storefront.internal/deploy/local/project"
)

// selftestCommand plants bugs and exits with 1 when one is not caught.
func selftestCommand(ctx context.Context, args []string) error {
	f := flag.NewFlagSet("faults selftest", flag.ContinueOnError)
	only := f.String("only", "", "mutants or scenarios, with commas between them; all when empty")
	if err := f.Parse(args); err != nil {
		return err
	}
	p, err := project.Find()
	if err != nil {
		return err
	}
	dir, err := folder("storefront-selftest-")
	if err != nil {
		return err
	}
	begun := time.Now()
	cfg := mutants.Config{Project: p, Dir: dir, Say: func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "%7.1fs  %s\n", time.Since(begun).Seconds(), fmt.Sprintf(format, args...))
	}}
	if *only != "" {
		cfg.Only = strings.Split(*only, ",")
	}
	all, err := mutants.Run(ctx, cfg)
	if err != nil {
		return fmt.Errorf("%w (the folder is %s)", err, dir)
	}
	text, right := mutants.Table(all)
	fmt.Fprint(os.Stdout, text)
	if !right {
		fmt.Fprintln(os.Stderr, "the folder is", dir)
		return errFound
	}
	return os.RemoveAll(dir)
}

// folder makes a folder through which everybody may pass: PostgreSQL's user does.
func folder(pattern string) (string, error) {
	dir, err := os.MkdirTemp("", pattern)
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o755)
}
