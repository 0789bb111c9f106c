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

// execute runs a command beside backing services of its own. Addresses that the environment gives (TEST_DATABASE_URL,
// TEST_REDIS_ADDR, TEST_KAFKA_BROKERS) are used instead; REQUIRE_REAL=1 refuses stand-ins.
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
	if err := os.Chmod(dir, 0o755); err != nil { // PostgreSQL's user passes through it
		return err
	}
	set, err := backing.Open(ctx, backing.Config{
		Project: p, Dir: dir, PreferReal: true, RequireReal: os.Getenv("REQUIRE_REAL") == "1",
		DatabaseURL: os.Getenv("TEST_DATABASE_URL"), RedisAddr: os.Getenv("TEST_REDIS_ADDR"), KafkaBrokers: os.Getenv("TEST_KAFKA_BROKERS"),
		Log: func(name string) io.Writer { return fileLog(filepath.Join(dir, name+".log")) },
		Say: say,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, set.Close()) }()
	if set.StandIns() {
		say("*** NOT EVERYTHING IS REAL: what is said of Redis and Kafka above holds for stand-ins only (REQUIRE_REAL=1 refuses them) ***")
	}
	return runCommand(ctx, argv, append(os.Environ(),
		"TEST_DATABASE_URL="+set.DatabaseURL, "TEST_REDIS_ADDR="+set.RedisAddr, "TEST_KAFKA_BROKERS="+set.KafkaBrokers))
}

// runCommand hands our own standard streams to the command. A signal to us ends the command first.
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
		_ = syscall.Kill(-p.Pid(), syscall.SIGTERM) // make and go test do not pass it on to all that they started
		return errors.Join(ctx.Err(), p.Stop(syscall.SIGTERM, 20*time.Second))
	}
}

func say(format string, args ...any) { fmt.Fprintf(os.Stderr, "local: "+format+"\n", args...) }

// fileLog opens a log; where that fails the log is lost and nothing else.
func fileLog(path string) io.Writer {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return io.Discard
	}
	return f
}
