// Package redis runs a Redis for the local stack and the tests: a private redis-server process, or miniredis
// in this process, which loses its data when it stops. It knows nothing of the keys.
package redis

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"storefront.internal/deploy/local/process"
	"storefront.internal/deploy/local/project"
)

// Find returns the path of an installed redis-server.
func Find() (path string, ok bool) {
	path, err := exec.LookPath("redis-server")
	return path, err == nil
}

// Config of a private server.
type Config struct {
	Path string
	Dir  string
	Port int
	// Keep writes every change to an append-only file below Dir, so that a restart finds the data.
	Keep bool
	// BusPort makes the server a master of a cluster, which talks to the others on this port.
	BusPort int
	Log     io.Writer
}

// Server is a running redis-server.
type Server struct {
	*process.Process
	addr string
}

// Start runs a server and returns when it answers.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	args := []string{"--bind", "127.0.0.1", "--port", fmt.Sprint(cfg.Port), "--dir", cfg.Dir, "--save", "",
		"--daemonize", "no",
		"--maxmemory-policy", "noeviction", "--databases", "1"}
	if cfg.Keep {
		args = append(args, "--appendonly", "yes", "--appendfsync", "everysec")
	}
	if cfg.BusPort > 0 {
		args = append(args, "--cluster-enabled", "yes", "--cluster-port", fmt.Sprint(cfg.BusPort),
			"--cluster-node-timeout", "2000",
			"--cluster-config-file", "nodes.conf")
	}
	p, err := process.Start(process.Spec{Name: "redis", Path: cfg.Path, Args: args, Dir: cfg.Dir,
		Log: cfg.Log})
	if err != nil {
		return nil, err
	}
	s := &Server{Process: p, addr: project.Loopback(cfg.Port)}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	client := redis.NewClient(&redis.Options{Addr: s.addr, MaxRetries: -1})
	defer func() { _ = client.Close() }()
	if err := p.WaitReady(ctx,
		func(ctx context.Context) error { return client.Ping(ctx).Err() }); err != nil {
		p.Kill()
		return nil, err
	}
	return s, nil
}

// Addr is where the server listens.
func (s *Server) Addr() string { return s.addr }

// Close stops the server.
func (s *Server) Close() error { return s.Stop(syscall.SIGTERM, 10*time.Second) }

// InProcess is miniredis with a moving clock: by itself it expires nothing.
type InProcess struct {
	server *miniredis.Miniredis
	stop   chan struct{}
	done   sync.WaitGroup
}

// StartInProcess listens on a port of the loopback interface.
func StartInProcess(port int) (*InProcess, error) {
	m := miniredis.NewMiniRedis()
	if err := m.StartAddr(project.Loopback(port)); err != nil {
		return nil, fmt.Errorf("start the in-process Redis: %w", err)
	}
	r := &InProcess{server: m, stop: make(chan struct{})}
	r.done.Go(r.moveClock)
	return r, nil
}

// Addr is where the stand-in listens.
func (r *InProcess) Addr() string { return r.server.Addr() }

// Close stops the stand-in; what it held is gone.
func (r *InProcess) Close() error {
	close(r.stop)
	r.done.Wait()
	r.server.Close()
	return nil
}

func (r *InProcess) moveClock() {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	last := time.Now()
	for {
		select {
		case <-r.stop:
			return
		case now := <-tick.C:
			r.server.FastForward(now.Sub(last))
			last = now
		}
	}
}
