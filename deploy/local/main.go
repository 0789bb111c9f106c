// Command local starts PostgreSQL, Redis and Kafka. `local run` runs the whole local stack in the foreground;
// `local exec -- command…` starts the stores once, runs the command with their addresses in its environment,
// and stops them.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"storefront.internal/deploy/local/postgres"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(ctx, os.Args[1:])
	stop()
	var exit *exec.ExitError
	switch {
	case err == nil:
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		os.Exit(exit.ExitCode())
	default:
		fmt.Fprintln(os.Stderr, "local:", err)
		os.Exit(1)
	}
}

func command(ctx context.Context, args []string) error {
	switch {
	case len(args) == 1 && args[0] == "run":
		return run(ctx)
	case len(args) > 2 && args[0] == "exec" && args[1] == "--":
		return execute(ctx, args[2:])
	case len(args) == 2 && args[0] == postgres.UnpackCommand:
		return postgres.Unpack(args[1])
	default:
		return errors.New("usage: local run | local exec -- command [argument…]")
	}
}
