// Command demoengine serves the small engine of package engine: DEMOENGINE_LISTEN (host:port) and DEMOENGINE_TOKEN, the bearer
// token that it expects.
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
	if err := run(ctx, os.Getenv("DEMOENGINE_LISTEN"), os.Getenv("DEMOENGINE_TOKEN")); err != nil {
		fmt.Fprintln(os.Stderr, "demoengine:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, listen, token string) error {
	if listen == "" || token == "" {
		return errors.New("DEMOENGINE_LISTEN and DEMOENGINE_TOKEN are required")
	}
	server := &http.Server{Addr: listen, Handler: engine.New(token, nil).Handler(), ReadHeaderTimeout: 5 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.ListenAndServe() }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	return server.Close() // a hanging answer is not waited for
}
