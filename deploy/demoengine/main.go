// Command demoengine serves the small engine of package engine. It reads from its environment:
//
//	DEMOENGINE_LISTEN           host:port, required
//	DEMOENGINE_TOKEN            the expected bearer token, required
//	DEMOENGINE_SNAPSHOTS_URL    base URL of control, where the engine reads snapshots of events
//	DEMOENGINE_SNAPSHOTS_TOKEN  the engine's bearer token at control
//	DEMOENGINE_KEEP             file that keeps the products between runs
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
		if err := e.PersistTo(path); err != nil {
			fmt.Fprintln(os.Stderr, "demoengine: begins without products:", err)
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
	return server.Close() // without waiting for hanging responses
}
