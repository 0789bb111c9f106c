// Command observability makes what operators look at, and proves that it works. `observability write ROOT` writes the alerting rules with their tests and the dashboards, made from Go (`make generate`). `observability live ROOT` brings up a
// stack and a real Prometheus, and runs all of it (`make observe-live`).
//
// It owns where the files lie. It refuses to be part of a running system.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"storefront.internal/deploy/observability/files"
	"storefront.internal/deploy/observability/live"
)

//go:generate go run . write ../..

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "observability:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 2 {
		return errors.New("usage: observability write ROOT | observability live ROOT")
	}
	root, err := filepath.Abs(args[1])
	if err != nil {
		return err
	}
	switch args[0] {
	case "write":
		return write(root)
	case "live":
		base := os.Getenv("PORT_BASE")
		if base == "" {
			base = "28480"
		}
		return live.Run(ctx, live.Config{Root: root, PortBase: base, Load: 90 * time.Second, Out: os.Stdout})
	default:
		return fmt.Errorf("unknown command %q", args[0])
	}
}

func write(root string) error {
	all, err := files.All()
	if err != nil {
		return err
	}
	for name, text := range all {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
