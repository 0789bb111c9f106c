// Command observability checks dashboards and alerts on a running system. It starts a deployment and a real
// Prometheus, runs every query and rule under load, and provokes three alerts (`make observe-live`).
//
// The dashboards and rules themselves are the JSON and YAML files of the Helm chart. The tests of this
// package check that these files and the runbooks only name metrics, settings and alerts that exist.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"storefront.internal/deploy/local/postgres"
	"storefront.internal/deploy/local/project"
	"storefront.internal/deploy/observability/live"
)

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
	switch {
	case len(args) == 2 && args[0] == postgres.UnpackCommand:
		return postgres.Unpack(args[1])
	case len(args) != 1 || args[0] != "live":
		return errors.New("usage: observability live")
	}
	p, err := project.Find()
	if err != nil {
		return err
	}
	return live.Run(ctx, live.Config{Project: p, Load: 90 * time.Second, Out: os.Stdout})
}
