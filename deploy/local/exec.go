package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"storefront.internal/deploy/local/backing"
	"storefront.internal/deploy/local/process"
	"storefront.internal/deploy/local/project"
)

// execute runs a command beside stores of its own. It uses addresses from the environment instead
// (TEST_DATABASE_URL, TEST_REDIS_ADDR, TEST_KAFKA_BROKERS), and fails with REQUIRE_REAL=1 when a stand-in
// would be needed.
func execute(ctx context.Context, argv []string) (err error) {
	p, err := project.Find()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "storefront-exec-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.Chmod(dir, 0o755); err != nil { // for PostgreSQL's user
		return err
	}
	set, err := backing.Open(ctx, backing.Config{
		Project: p, Dir: dir, PreferReal: true, RequireReal: os.Getenv("REQUIRE_REAL") == "1",
		DatabaseURL: os.Getenv("TEST_DATABASE_URL"), RedisAddr: os.Getenv("TEST_REDIS_ADDR"),
		KafkaBrokers: os.Getenv("TEST_KAFKA_BROKERS"),
		Log:          func(name string) io.Writer { return fileLog(filepath.Join(dir, name+".log")) },
		Say:          say,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, set.Close()) }()
	if set.StandIns() {
		say("*** STAND-INS: the tests do not run against a real Redis and Kafka (REQUIRE_REAL=1 forbids " +
			"stand-ins) ***")
	}
	return runCommand(ctx, argv, append(os.Environ(),
		"TEST_DATABASE_URL="+set.DatabaseURL, "TEST_REDIS_ADDR="+set.RedisAddr, "TEST_KAFKA_BROKERS="+
			set.KafkaBrokers))
}

// runCommand runs the command with the standard streams of this process. A signal ends the command first.
func runCommand(ctx context.Context, argv, env []string) error {
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return err
	}
	p, err := process.Start(process.Spec{Name: argv[0], Path: path, Args: argv[1:], Env: env, Log: os.Stdout})
	if err != nil {
		return err
	}
	select {
	case <-p.Done():
		return p.Err()
	case <-ctx.Done():
		// make and go test do not forward it to all their children
		_ = syscall.Kill(-p.Pid(), syscall.SIGTERM)
		return errors.Join(ctx.Err(), p.Stop(syscall.SIGTERM, 20*time.Second))
	}
}

func say(format string, args ...any) { fmt.Fprintf(os.Stderr, "local: "+format+"\n", args...) }

// fileLog opens a log; when that fails, the command runs without it.
func fileLog(path string) io.Writer {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return io.Discard
	}
	return f
}
