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

const usage = `images [flags] FOLDER…   (edge, control, engine-relay, deploy/demoengine; run it at the top)

Writes OUT/NAME (an OCI layout) and OUT/NAME-PLATFORM.spdx.json (the bill of materials), where NAME is the
last part of FOLDER, and prints
size and digest of each. SOURCE_DATE_EPOCH is the creation time of the images (default: 1970).
VERSION is the version that the services report.

images -check <LIST   asks the registries for each image of a list, one a line, and builds nothing.

`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Getenv, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, env func(string) string, in io.Reader, out io.Writer) error {
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
	registry := flags.String("push", "", "REGISTRY/FOLDER to push the images to, with the tag VERSION")
	digests := flags.String("digests", "", "file for the names and digests of the pushed images")
	checks := flags.Bool("check", false, "check that the images of standard input are in their registries")
	limit := flags.Int64("limit", 25, "largest compressed size of an image in MiB")
	if err := flags.Parse(args); err != nil {
		return err
	}
	o.platforms, o.version = strings.Split(*platforms, ","), env("VERSION")
	if *checks {
		return check(ctx, in, o.platforms, out)
	}
	if flags.NArg() == 0 {
		flags.Usage()
		return errors.New("no modules given")
	}
	var err error
	if o.created, err = epoch(env("SOURCE_DATE_EPOCH")); err != nil {
		return err
	}
	if *registry != "" {
		o.release = &release{registry: *registry, version: o.version}
	}
	if err := o.buildAll(ctx, flags.Args(), *limit<<20, out); err != nil || o.release == nil {
		return err
	}
	return o.release.publish(ctx, *digests)
}

// buildAll builds every module and prints sizes and digests.
func (o order) buildAll(ctx context.Context, modules []string, limit int64, out io.Writer) error {
	for _, module := range modules {
		made, err := o.build(ctx, module)
		if err != nil {
			return fmt.Errorf("%s: %w", module, err)
		}
		for _, i := range made {
			fmt.Fprintf(out, "%-12s %-12s %6.1f MiB stored, %6.1f MiB unpacked  %s\n", module, i.platform,
				mib(i.stored), mib(i.unpacked), i.digest)
			if i.stored > limit {
				return fmt.Errorf("%s for %s has %.1f MiB, %.0f are allowed", module, i.platform,
					mib(i.stored), mib(limit))
			}
		}
	}
	return nil
}

// publish tags the pushed images and writes their digests to a file.
func (r *release) publish(ctx context.Context, file string) error {
	if err := r.tag(ctx); err != nil || file == "" {
		return err
	}
	var text strings.Builder
	return errors.Join(r.list(&text), os.WriteFile(file, []byte(text.String()), 0o644))
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }
