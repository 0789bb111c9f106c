package app

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"storefront.internal/shared/service"
	"storefront.internal/shared/telemetry"
)

const usage = `edge [serve]           serve the public surface (default)
edge health            exit 0 when the service of this container is ready
edge reference config  print the table of CONFIG.md
edge reference metrics print the table of METRICS.md
`

// Exit codes of Main.
const (
	exitOK = iota
	exitFailed
	exitUsage
)

// Main runs a command and returns the exit code.
func Main(ctx context.Context, args, environ []string, out, errs io.Writer) int {
	commands := map[string]func() error{
		"":                  func() error { return serve(ctx, environ, out) },
		"serve":             func() error { return serve(ctx, environ, out) },
		"health":            func() error { return telemetry.Healthy(ctx, Prefix, environ) },
		"reference config":  func() error { return emit(out, ConfigReference()) },
		"reference metrics": func() error { return emit(out, MetricsReference()) },
	}
	run, ok := commands[strings.Join(args, " ")]
	if !ok {
		fmt.Fprint(errs, usage)
		return exitUsage
	}
	if err := run(); err != nil {
		fmt.Fprintln(errs, "edge:", telemetry.Redact(err.Error()))
		return exitFailed
	}
	return exitOK
}

// gcPercent is how much the heap may grow between two collections. An edge holds little and makes much
// garbage, so the default of 100 would collect several times a second. GOGC overrides it; near GOMEMLIMIT the
// runtime ignores it.
const gcPercent = 300

func serve(ctx context.Context, environ []string, logs io.Writer) error {
	cfg, err := Load(environ)
	if err != nil {
		return err
	}
	log := telemetry.NewLogger(logs, cfg.LogLevel, "edge")
	if !slices.ContainsFunc(environ, func(v string) bool { return strings.HasPrefix(v, "GOGC=") }) {
		debug.SetGCPercent(gcPercent)
	}
	if limit := service.ApplyMemoryHeadroom(); limit > 0 {
		log.Info("memory limit", "bytes", limit)
	}
	goredis.SetLogger(telemetry.DriverLog{Logger: log, Driver: "redis"}) // global, so it is not set in New
	a, err := New(ctx, cfg, log)
	if err != nil {
		return err
	}
	return a.Run(ctx)
}

func emit(out io.Writer, text string) error {
	_, err := io.WriteString(out, text)
	return err
}
