// Command faults breaks a whole deployment on purpose and proves that nothing was lost: `faults run` is a campaign of seeded faults
// whose record is judged in the end, `faults selftest` plants bugs and shows that the judgement finds them, and `faults sweep` kills at every crash point. It exits with 1 when something was found, and with 2 when nothing could be judged.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"storefront.internal/deploy/local/postgres"
)

var errFound = errors.New("the run found something")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(ctx, os.Args[1:])
	stop()
	switch {
	case err == nil:
	case errors.Is(err, errFound):
		os.Exit(1)
	default:
		fmt.Fprintln(os.Stderr, "faults:", err)
		os.Exit(2)
	}
}

func command(ctx context.Context, args []string) error {
	switch {
	case len(args) > 0 && args[0] == "run":
		return runCommand(ctx, args[1:])
	case len(args) > 0 && args[0] == "selftest":
		return selftestCommand(ctx, args[1:])
	case len(args) > 0 && args[0] == "sweep":
		return sweepCommand(ctx, args[1:])
	case len(args) == 2 && args[0] == postgres.UnpackCommand:
		return postgres.Unpack(args[1])
	default:
		return errors.New("usage: faults run [-minutes 10] [-seed n] [-faults N1,N2] [-redis=false], faults selftest [-only name,name], faults sweep [-only point,point]")
	}
}
