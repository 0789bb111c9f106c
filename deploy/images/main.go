// Command images builds the container images of the services without a container engine: an OCI layout and an
// SPDX bill of materials for each. It uses the packages of ko, and not the ko command, because that command
// takes its base image from a registry or a Docker daemon only; the base here is empty. With -root it also
// unpacks the images for the test that runs them, and with -push it sends them to a registry. It is a module
// of its own to keep ko out of the services' dependencies.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

const usage = `images [flags] MODULE…   (edge, control, engine-relay; run it at the top of the repository)

Writes OUT/MODULE (an OCI layout) and OUT/MODULE-PLATFORM.spdx.json (the bill of materials), and prints
size and digest of each. SOURCE_DATE_EPOCH is the creation time of the images (default: 1970).
VERSION is the version that the services report.

`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Getenv, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, env func(string) string, out io.Writer) error {
	flags := flag.NewFlagSet("images", flag.ContinueOnError)
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), usage)
		flags.PrintDefaults()
	}
	var o order
	platforms := flags.String("platforms", "linux/amd64", "platforms, separated by commas")
	flags.StringVar(&o.out, "out", ".run/images", "folder of the layouts")
	flags.StringVar(&o.source, "source", ".", "top of the repository that is built")
	flags.StringVar(&o.root, "root", "", "folder in which the images of this machine's platform are unpacked")
	flags.StringVar(&o.registry, "push", "", "REGISTRY/FOLDER to push the images to, with the tag VERSION")
	limit := flags.Int64("limit", 25, "largest compressed size of an image in MiB")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		flags.Usage()
		return errors.New("no modules given")
	}
	o.platforms, o.version = strings.Split(*platforms, ","), env("VERSION")
	var err error
	if o.created, err = epoch(env("SOURCE_DATE_EPOCH")); err != nil {
		return err
	}
	for _, module := range flags.Args() {
		made, err := o.build(ctx, module)
		if err != nil {
			return fmt.Errorf("%s: %w", module, err)
		}
		for _, i := range made {
			fmt.Fprintf(out, "%-12s %-12s %6.1f MiB stored, %6.1f MiB unpacked  %s\n", module, i.platform,
				mib(i.stored), mib(i.unpacked), i.digest)
			if i.stored > *limit<<20 {
				return fmt.Errorf("%s for %s has %.1f MiB, %d are allowed", module, i.platform, mib(i.stored),
					*limit)
			}
		}
	}
	return nil
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }
