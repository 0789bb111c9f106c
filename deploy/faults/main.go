// Command faults tests a whole deployment under faults. `faults run` injects random faults and checks that
// nothing is lost or counted twice. `faults selftest` plants bugs and checks that they are detected. `faults
// sweep` kills processes at all failpoints. The exit status is 1 when something was found and 2 when nothing
// could be checked.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"storefront.internal/deploy/faults/mutants"
	"storefront.internal/deploy/faults/sweep"
	"storefront.internal/deploy/local/postgres"
	"storefront.internal/deploy/local/project"
)

var errFound = errors.New("the run found something")

const usage = `usage: faults run [-minutes 10] [-seed n] [-faults N1,N2] [-redis=false]
       faults selftest [-only name,name]
       faults sweep [-only failpoint,failpoint]`

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
		return directed(ctx, "selftest", args[1:], selftest)
	case len(args) > 0 && args[0] == "sweep":
		return directed(ctx, "sweep", args[1:], sweepFailpoints)
	case len(args) == 2 && args[0] == postgres.UnpackCommand:
		return postgres.Unpack(args[1])
	default:
		return errors.New(usage)
	}
}

// environment is what a command works with.
type environment struct {
	project project.Project
	dir     string
	only    []string
	logf    func(format string, args ...any)
}

// directed runs a command in a new folder, which is kept when the command finds something or fails.
func directed(ctx context.Context, name string, args []string,
	run func(context.Context, environment) (ok bool, err error)) error {
	f := flag.NewFlagSet("faults "+name, flag.ContinueOnError)
	only := f.String("only", "", "names to run, separated by commas; all when empty")
	if err := f.Parse(args); err != nil {
		return err
	}
	e, err := newEnvironment()
	if err != nil {
		return err
	}
	if *only != "" {
		e.only = strings.Split(*only, ",")
	}
	ok, err := run(ctx, e)
	if err != nil {
		return fmt.Errorf("%w (the folder is %s)", err, e.dir)
	}
	if !ok {
		fmt.Fprintln(os.Stderr, "the folder is", e.dir)
		return errFound
	}
	return os.RemoveAll(e.dir)
}

func newEnvironment() (environment, error) {
	begun := time.Now()
	e := environment{logf: func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "%7.1fs  %s\n", time.Since(begun).Seconds(), fmt.Sprintf(format, args...))
	}}
	var err error
	if e.project, err = project.Find(); err != nil {
		return e, err
	}
	if e.dir, err = os.MkdirTemp("", "storefront-faults-"); err != nil {
		return e, err
	}
	return e, os.Chmod(e.dir, 0o755) // the user of PostgreSQL passes through it
}

// selftest plants bugs and reports whether all of them were detected.
func selftest(ctx context.Context, e environment) (bool, error) {
	all, err := mutants.Run(ctx, mutants.Config{Project: e.project, Dir: e.dir, Only: e.only, Logf: e.logf})
	if err != nil {
		return false, err
	}
	text, ok := mutants.Table(all)
	fmt.Print(text)
	return ok, nil
}

// sweepFailpoints kills processes at failpoints and reports whether all died and nothing was found.
func sweepFailpoints(ctx context.Context, e environment) (bool, error) {
	var rounds []sweep.Round
	for _, r := range sweep.Plan() {
		r = slices.DeleteFunc(r, func(c sweep.Case) bool {
			return len(e.only) > 0 &&
				!slices.Contains(e.only, c.Point)
		})
		if len(r) > 0 {
			rounds = append(rounds, r)
		}
	}
	all, err := sweep.Run(ctx, sweep.Config{Project: e.project, Dir: e.dir, Rounds: rounds, Logf: e.logf})
	if err != nil {
		return false, err
	}
	clean, cases := 0, 0
	for _, o := range all {
		fmt.Println(o.Line())
		if cases += len(o.Round); o.OK() {
			clean++
		}
	}
	fmt.Printf("%d of %d rounds are clean, %d cases\n", clean, len(all), cases)
	return clean == len(all) && clean > 0, nil
}
