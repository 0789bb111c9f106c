// Command demoengine serves the small engine of package engine: DEMOENGINE_LISTEN (host:port) and DEMOENGINE_TOKEN, the bearer
// token that it expects. With DEMOENGINE_SNAPSHOTS_URL (of the internal surface) and DEMOENGINE_SNAPSHOTS_TOKEN (of the engine
// principal) it reads what it is told of and recommends from it; DEMOENGINE_KEEP is a file that keeps that between runs.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"storefront.internal/deploy/demoengine/engine"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	e := engine.New(os.Getenv("DEMOENGINE_TOKEN"), nil)
	if url := os.Getenv("DEMOENGINE_SNAPSHOTS_URL"); url != "" {
		e.ReadSnapshots(url, os.Getenv("DEMOENGINE_SNAPSHOTS_TOKEN"))
	}
	if path := os.Getenv("DEMOENGINE_KEEP"); path != "" {
		if err := e.Keep(path); err != nil {
			fmt.Fprintln(os.Stderr, "demoengine: begins anew:", err)
		}
	}
	if err := run(ctx, e, os.Getenv("DEMOENGINE_LISTEN")); err != nil {
		fmt.Fprintln(os.Stderr, "demoengine:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, e *engine.Engine, listen string) error {
	if listen == "" || os.Getenv("DEMOENGINE_TOKEN") == "" {
		return errors.New("DEMOENGINE_LISTEN and DEMOENGINE_TOKEN are required")
	}
	server := &http.Server{Addr: listen, Handler: e.Handler(), ReadHeaderTimeout: 5 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.ListenAndServe() }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	return server.Close() // a hanging answer is not waited for
}
