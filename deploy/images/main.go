// Command images builds the container images of the services without a container engine: an OCI layout of each, with an SPDX
// bill of materials, from an empty base that it makes itself, so that no registry is asked for anything. It is a module of its
// own, because what builds images has no place in the services' dependencies. With -root it also unpacks what an image holds,
// for the test that runs it, and with -push it sends them to a registry, as a release does.
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

Writes OUT/MODULE (an OCI layout) and OUT/MODULE-PLATFORM.spdx.json (the bill of materials), and prints size and digest of each.
SOURCE_DATE_EPOCH is the images' time (1970 when it is not set). VERSION is what the services call themselves.

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
	flags.StringVar(&o.root, "root", "", "folder where the image of this machine's platform is unpacked, under the module's name")
	flags.StringVar(&o.registry, "push", "", "registry and folder to send them to, as REGISTRY/FOLDER; tagged with VERSION")
	limit := flags.Int64("limit", 25, "largest size of an image as it is stored and sent, in MiB")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		flags.Usage()
		return errors.New("name the modules")
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
			fmt.Fprintf(out, "%-12s %-12s %6.1f MiB stored, %6.1f MiB unpacked  %s\n", module, i.platform, mib(i.stored), mib(i.unpacked), i.digest)
			if i.stored > *limit<<20 {
				return fmt.Errorf("%s for %s has %.1f MiB, %d are allowed", module, i.platform, mib(i.stored), *limit)
			}
		}
	}
	return nil
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }
