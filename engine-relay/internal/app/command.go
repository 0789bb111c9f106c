package app

import (
	"context"
	"fmt"
	"io"
	"strings"

	"storefront.internal/shared/service"
	"storefront.internal/shared/settings"
	"storefront.internal/shared/telemetry"
)

const usage = `engine-relay [serve]           store signals and deliver them to the engine (default)
engine-relay health            exit 0 when the service of this container is ready
engine-relay reference config  print the table of CONFIG.md
engine-relay reference metrics print the table of METRICS.md
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
		fmt.Fprintln(errs, "engine-relay:", telemetry.Redact(err.Error()))
		return exitFailed
	}
	return exitOK
}

func serve(ctx context.Context, environ []string, logs io.Writer) error {
	var cfg Config
	if err := settings.Load(Prefix, &cfg, environ); err != nil {
		return err
	}
	log := telemetry.NewLogger(logs, cfg.LogLevel, "engine-relay")
	if limit := service.ApplyMemoryHeadroom(); limit > 0 {
		log.Info("memory limit", "bytes", limit)
	}
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
