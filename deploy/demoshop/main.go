// Command demoshop serves the demo shop of package shop and the proxy between its pages and the edge. It
// reads from its environment:
//
//	DEMOSHOP_LISTEN           host:port of the pages, required
//	DEMOSHOP_EDGE_LISTEN      host:port of the proxy, required
//	DEMOSHOP_EDGE_URL         base URL of the edge, which serves the browser SDK (EDGE_SDK), required
//	DEMOSHOP_CONNECTION_ID    the connection of the shop, required
//	DEMOSHOP_STOREFRONT_KEY   its storefront key, required
//	DEMOSHOP_CONTROL_URL      base URL of control
//	DEMOSHOP_CONNECTOR_TOKEN  for resuming delivery and for erasing a visitor
//	DEMOSHOP_BACKEND_TOKEN    for reading the queue
//	DEMOSHOP_ENGINE_URL       base URL of the demo engine
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"

	"storefront.internal/deploy/demoshop/proxy"
	"storefront.internal/deploy/demoshop/shop"
	"storefront.internal/deploy/demoshop/trail"
	"storefront.internal/deploy/stack/client"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Getenv); err != nil {
		fmt.Fprintln(os.Stderr, "demoshop:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, env func(string) string) error {
	for _, name := range []string{"LISTEN", "EDGE_LISTEN", "EDGE_URL", "CONNECTION_ID", "STOREFRONT_KEY"} {
		if env("DEMOSHOP_"+name) == "" {
			return errors.New("DEMOSHOP_" + name + " is required")
		}
	}
	edge, err := url.Parse(env("DEMOSHOP_EDGE_URL"))
	if err != nil {
		return fmt.Errorf("DEMOSHOP_EDGE_URL: %w", err)
	}
	pagesEdge := "http://" + env("DEMOSHOP_EDGE_LISTEN")
	sdk, err := sdkScripts(pagesEdge)
	if err != nil {
		return err
	}
	t := trail.New()
	p := proxy.New(edge, t)
	s, err := shop.New(shop.Config{
		Storefront: client.Storefront{BaseURL: edge.String(), ConnectionID: env("DEMOSHOP_CONNECTION_ID"),
			Key: env("DEMOSHOP_STOREFRONT_KEY")},
		BrowserEdgeURL: pagesEdge,
		Control: client.Internal{BaseURL: env("DEMOSHOP_CONTROL_URL"),
			ConnectorToken: env("DEMOSHOP_CONNECTOR_TOKEN"), BackendToken: env("DEMOSHOP_BACKEND_TOKEN")},
		EngineURL: env("DEMOSHOP_ENGINE_URL"), SDK: sdk,
	}, p, t)
	if err != nil {
		return err
	}
	go t.Follow(ctx, env("DEMOSHOP_ENGINE_URL"), env("DEMOSHOP_CONNECTION_ID"))
	return serve(ctx, map[string]http.Handler{
		env("DEMOSHOP_LISTEN"): s.Handler(), env("DEMOSHOP_EDGE_LISTEN"): p,
	})
}

// serve serves until ctx ends or a listener fails.
func serve(ctx context.Context, handlers map[string]http.Handler) error {
	failed := make(chan error, len(handlers))
	for address, handler := range handlers {
		server := &http.Server{Addr: address, Handler: handler, ReadHeaderTimeout: 5 * time.Second}
		defer server.Close() // without waiting for open event streams
		go func() { failed <- server.ListenAndServe() }()
	}
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return nil
	}
}
