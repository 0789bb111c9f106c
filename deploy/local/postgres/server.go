// Package postgres runs a private PostgreSQL server for the local stack and for tests: from installed
// binaries or from ones that are fetched once, also when the user is root (the server then runs as an
// unprivileged user). It owns the folder that it is given, in which each major version has its data, and
// listens on the loopback interface only. It knows nothing of schemas or roles.
package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"storefront.internal/deploy/local/process"
	"storefront.internal/deploy/local/project"
)

// Superuser owns the server; it is trusted on the loopback interface.
const Superuser = "postgres"

// Config of a server. Binaries come from Choose or Fetch, Dir from Home.
type Config struct {
	Binaries Binaries
	Dir      string // of the data of all versions
	Port     int
	// Durable waits for the disk at commit. Without it, committed data survives a kill of the server but not
	// a crash of the machine.
	Durable bool
	// Settings are further ones, name=value; they win.
	Settings []string
	Log      io.Writer
}

// Server is a running server.
type Server struct {
	*process.Process
	port int
}

// Start initialises the data folder of the server's version when it is empty, removes what a dead server
// left, and returns when a connection succeeds.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	if err := moveLegacy(cfg.Dir); err != nil {
		return nil, err
	}
	data := dataDir(cfg.Dir, cfg.Binaries.Major)
	if err := initialise(ctx, cfg, data); err != nil {
		return nil, err
	}
	if err := clearStale(data); err != nil {
		return nil, err
	}
	tail := &process.Tail{}
	p, err := process.Start(process.Spec{
		Name: "postgres", Path: filepath.Join(cfg.Binaries.Dir, "postgres"), Args: arguments(cfg, data),
		Dir: cfg.Dir,
		Log: tee(tail, cfg.Log), User: process.Unprivileged(), Death: syscall.SIGINT,
	})
	if err != nil {
		return nil, err
	}
	s := &Server{Process: p, port: cfg.Port}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := p.WaitReady(ctx, s.ping); err != nil {
		p.Kill()
		return nil, fmt.Errorf("%w\n%s", err, tail)
	}
	return s, nil
}

// URL of a database of this server, as superuser.
func (s *Server) URL(database string) string {
	return fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable", Superuser, project.Loopback(s.port), database)
}

// Close stops the server by a fast shutdown: sessions are cut, committed data is kept.
func (s *Server) Close() error { return s.Stop(syscall.SIGINT, 30*time.Second) }

func (s *Server) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	c, err := pgx.Connect(ctx, s.URL("postgres"))
	if err != nil {
		return err
	}
	return c.Close(ctx)
}

func initialise(ctx context.Context, cfg Config, data string) error {
	if _, err := os.Stat(filepath.Join(data, "PG_VERSION")); err == nil {
		return nil
	} else if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	// An interrupted initdb left a folder without a version.
	if err := os.RemoveAll(data); err != nil {
		return err
	}
	out := &bytes.Buffer{}
	args := []string{"-D", data, "-U", Superuser, "-A", "trust", "-E", "UTF8", "--locale=C"}
	if !cfg.Durable {
		args = append(args, "--no-sync")
	}
	p, err := process.Start(process.Spec{
		Name: "initdb", Path: filepath.Join(cfg.Binaries.Dir, "initdb"), Args: args, Dir: cfg.Dir, Log: out,
		User: process.Unprivileged(),
	})
	if err != nil {
		return err
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		p.Kill()
		return ctx.Err()
	}
	if p.Err() != nil {
		return fmt.Errorf("initdb: %w\n%s", p.Err(), out)
	}
	return nil
}

func arguments(cfg Config, data string) []string {
	args := []string{"-D", data, "-p", fmt.Sprint(cfg.Port)}
	settings := []string{
		"listen_addresses=127.0.0.1", "unix_socket_directories=", "max_connections=500",
		"shared_buffers=512MB",
		"max_wal_size=2GB", "autovacuum_naptime=5s", "timezone=UTC", "log_min_messages=warning",
	}
	if !cfg.Durable {
		// A commit still reaches the operating system before it is acknowledged, so kill -9 loses nothing.
		settings = append(settings, "fsync=off", "full_page_writes=off")
	}
	for _, s := range append(settings, cfg.Settings...) {
		args = append(args, "-c", s)
	}
	return args
}

func tee(tail *process.Tail, log io.Writer) io.Writer {
	if log == nil {
		return tail
	}
	return io.MultiWriter(tail, log)
}
