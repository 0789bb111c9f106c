package app

import (
	"context"
	"fmt"
	"io"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"storefront.internal/control/internal/jobs"
	"storefront.internal/control/internal/seal"
	"storefront.internal/shared/pg"
	"storefront.internal/shared/pg/migrations"
	"storefront.internal/shared/service"
	"storefront.internal/shared/settings"
	"storefront.internal/shared/telemetry"
)

const usage = `control [serve]          serve the internal surface (default)
control receive          serve the public receiver of providers' webhooks, with RECEIVER_ variables
control health           exit 0 when the service of this container is ready
control receive health   the same for a container that runs the receiver
control migrate up       migrate the database to this binary's schema; a second migrator waits for the first
control migrate status   print the schema's versions; exit 1 when they are old
control keyset new       print a new keyset for CONTROL_KEYSET
control keyset add       print the keyset of standard input with a new key beside the primary one
control keyset promote   print it with the newest key as the primary one
control keyset retire    print it with the primary key alone, once no secret is sealed by another
control privacy list     print the requests about personal data that are not completed
control privacy done ID  complete a data request that an operator answered, and delete its webhook
control privacy approve ID  redact all orders that a held redaction matches
control privacy refuse ID   complete a held redaction with only the orders that it names
control connection list     print the connections that are disabled
control connection disable ID REASON
                            stop all work for a connection; its webhooks are kept
control connection enable ID
                            let the work for a connection continue, with a catch-up
control reference config print the table of CONFIG.md
control reference metrics print the table of METRICS.md
`

// Exit codes of Main.
const (
	exitOK = iota
	exitFailed
	exitUsage
)

// Main runs a command and returns the exit code.
func Main(ctx context.Context, args, environ []string, in io.Reader, out, errs io.Writer) int {
	commands := map[string]func() error{
		"":                  func() error { return serve(ctx, environ, out) },
		"serve":             func() error { return serve(ctx, environ, out) },
		"health":            func() error { return telemetry.Healthy(ctx, Prefix, environ) },
		"receive":           func() error { return receive(ctx, environ, out) },
		"receive health":    func() error { return telemetry.Healthy(ctx, ReceiverPrefix, environ) },
		"migrate up":        func() error { return migrateUp(ctx, environ) },
		"migrate status":    func() error { return migrateStatus(ctx, environ, out) },
		"keyset new":        func() error { return newKeyset(out) },
		"keyset add":        func() error { return changeKeyset(in, out, seal.Add) },
		"keyset promote":    func() error { return changeKeyset(in, out, seal.Promote) },
		"keyset retire":     func() error { return changeKeyset(in, out, seal.Retire) },
		"privacy list":      func() error { return listPrivacyRequests(ctx, environ, out) },
		"connection list":   func() error { return listDisabledConnections(ctx, environ, out) },
		"reference config":  func() error { return emit(out, ConfigReference()) },
		"reference metrics": func() error { return emit(out, MetricsReference()) },
	}
	if command := privacyCommand(ctx, environ, args, out); command != nil {
		commands[strings.Join(args, " ")] = command
	}
	if command := connectionCommand(ctx, environ, args, out); command != nil {
		commands[strings.Join(args, " ")] = command
	}
	run, ok := commands[strings.Join(args, " ")]
	if !ok {
		fmt.Fprint(errs, usage)
		return exitUsage
	}
	if err := run(); err != nil {
		fmt.Fprintln(errs, "control:", telemetry.Redact(err.Error()))
		return exitFailed
	}
	return exitOK
}

func serve(ctx context.Context, environ []string, logs io.Writer) error {
	var cfg Config
	if err := settings.Load(Prefix, &cfg, environ); err != nil {
		return err
	}
	log := telemetry.NewLogger(logs, cfg.LogLevel, "control")
	if limit := service.ApplyMemoryHeadroom(); limit > 0 {
		log.Info("memory limit", "bytes", limit)
	}
	goredis.SetLogger(telemetry.DriverLog{Logger: log, Driver: "redis"}) // one per process, so not New's
	a, err := New(ctx, cfg, log)
	if err != nil {
		return err
	}
	return a.Run(ctx)
}

// MigrateUp migrates the schemas of a database and River's tables to the versions of this binary.
func MigrateUp(ctx context.Context, url string) error {
	if err := migrations.Up(ctx, url); err != nil {
		return err
	}
	return jobs.Migrate(ctx, url)
}

func migrateUp(ctx context.Context, environ []string) error {
	cfg, err := loadMigrate(environ)
	if err != nil {
		return err
	}
	return MigrateUp(ctx, cfg.DatabaseURL.Reveal())
}

func migrateStatus(ctx context.Context, environ []string, out io.Writer) error {
	cfg, err := loadMigrate(environ)
	if err != nil {
		return err
	}
	pool, err := pg.Open(ctx, settings.Postgres{DatabaseURL: cfg.DatabaseURL, MaxConns: 2},
		"storefront-migrate")
	if err != nil {
		return err
	}
	defer pool.Close()
	behind := false
	for _, line := range []struct {
		name string
		read func() (int64, int64, error)
	}{
		{"schema", func() (int64, int64, error) { return migrations.Version(ctx, pool) }},
		{"job schema", func() (int64, int64, error) { return jobs.Version(ctx, pool) }},
	} {
		current, want, err := line.read()
		if err != nil {
			return fmt.Errorf("%s: %w", line.name, err)
		}
		fmt.Fprintf(out, "%s: %d, this binary wants %d\n", line.name, current, want)
		behind = behind || current < want
	}
	if behind {
		return fmt.Errorf("the database is behind: run control migrate up")
	}
	return nil
}

func newKeyset(out io.Writer) error {
	keyset, err := seal.NewKeyset()
	if err != nil {
		return err
	}
	return emit(out, strings.TrimSpace(string(keyset))+"\n")
}

// maxKeyset bounds what is read of a keyset, in bytes.
const maxKeyset = 1 << 20

func changeKeyset(in io.Reader, out io.Writer, change func([]byte) ([]byte, error)) error {
	keyset, err := io.ReadAll(io.LimitReader(in, maxKeyset))
	if err != nil {
		return fmt.Errorf("read keyset: %w", err)
	}
	changed, err := change(keyset)
	if err != nil {
		return err
	}
	return emit(out, strings.TrimSpace(string(changed))+"\n")
}

func emit(out io.Writer, text string) error {
	_, err := io.WriteString(out, text)
	return err
}
