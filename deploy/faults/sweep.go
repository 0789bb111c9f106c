package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"storefront.internal/deploy/faults/sweep"
	"storefront.internal/deploy/local/project"
)

// sweepCommand kills at every crash point and exits with 1 when something was found, or when somebody did not die.
func sweepCommand(ctx context.Context, args []string) error {
	f := flag.NewFlagSet("faults sweep", flag.ContinueOnError)
	only := f.String("only", "", "crash points, with commas between them; all when empty")
	if err := f.Parse(args); err != nil {
		return err
	}
	p, err := project.Find()
	if err != nil {
		return err
	}
	dir, err := folder("storefront-sweep-")
	if err != nil {
		return err
	}
	begun := time.Now()
	all, err := sweep.Run(ctx, sweep.Config{Project: p, Dir: dir, Rounds: rounds(*only), Say: func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "%7.1fs  %s\n", time.Since(begun).Seconds(), fmt.Sprintf(format, args...))
	}})
	if err != nil {
		return fmt.Errorf("%w (the folder is %s)", err, dir)
	}
	right, cases := 0, 0
	for _, o := range all {
		fmt.Fprintln(os.Stdout, o.Line())
		if cases += len(o.Round); o.Right() {
			right++
		}
	}
	fmt.Fprintf(os.Stdout, "%d of %d rounds are clean, %d cases, %s\n", right, len(all), cases, time.Since(begun).Round(time.Second))
	if right < len(all) || right == 0 {
		fmt.Fprintln(os.Stderr, "the folder is", dir)
		return errFound
	}
	return os.RemoveAll(dir)
}

// rounds are those of the plan in which one of the points is, and of these only the cases that are asked for.
func rounds(only string) []sweep.Round {
	if only == "" {
		return sweep.Plan()
	}
	wanted := strings.Split(only, ",")
	var some []sweep.Round
	for _, r := range sweep.Plan() {
		r = slices.DeleteFunc(r, func(c sweep.Case) bool { return !slices.Contains(wanted, c.Point) })
		if len(r) > 0 {
			some = append(some, r)
		}
	}
	return some
}
