// Command fakeprovider serves the fakes of package fake. It reads from its environment:
//
//	FAKEPROVIDER_LISTEN            host:port, required
//	FAKEPROVIDER_APP_SECRET        signs webhooks (demo-app-secret)
//	FAKEPROVIDER_PRODUCTS          products of each store (2000)
//	FAKEPROVIDER_ORDERS            orders of each store (40)
//	FAKEPROVIDER_SEED              of the stores' contents (1)
//	FAKEPROVIDER_CONTENTS          none: stores begin empty
//	FAKEPROVIDER_STORES            the first stores: tiendanube:<id>,shopify:<shop>,woocommerce:<store>
//	FAKEPROVIDER_THROTTLE          off: no rate limits
//	FAKEPROVIDER_STRICT_URLS       on: webhook URLs must be https and no local host, as at real providers
//	FAKEPROVIDER_RECEIVER          webhooks go to this base URL and the path of the registered URL
//	FAKEPROVIDER_CONTROL           base URL of control; /hooks/{provider}/{endpoint_id} forwards to it
//	FAKEPROVIDER_CONNECTOR_TOKENS  bearer tokens for control: tiendanube:<token>,shopify:<token>
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"storefront.internal/deploy/fakeprovider/fake"
	"storefront.internal/deploy/fakeprovider/forward"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Getenv); err != nil {
		fmt.Fprintln(os.Stderr, "fakeprovider:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, env func(string) string) error {
	listen := env("FAKEPROVIDER_LISTEN")
	if listen == "" {
		return errors.New("FAKEPROVIDER_LISTEN is required")
	}
	config, err := configFrom(env)
	if err != nil {
		return err
	}
	fakes := fake.New(config)
	defer fakes.Close()
	server := &http.Server{Addr: listen, Handler: fakes.Handler(), ReadHeaderTimeout: 5 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.ListenAndServe() }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	return server.Close() // without waiting for hanging answers
}

func configFrom(env func(string) string) (fake.Config, error) {
	c := fake.Config{
		Seed:        1,
		AppSecret:   env("FAKEPROVIDER_APP_SECRET"),
		Unthrottled: env("FAKEPROVIDER_THROTTLE") == "off",
		Empty:       env("FAKEPROVIDER_CONTENTS") == "none",
		StrictURLs:  env("FAKEPROVIDER_STRICT_URLS") == "on",
		Receiver:    env("FAKEPROVIDER_RECEIVER"),
	}
	var faults []error
	number := func(name string, set func(uint64)) {
		if text := env(name); text != "" {
			n, err := strconv.ParseUint(text, 10, 31)
			if err != nil {
				faults = append(faults, fmt.Errorf("%s is not a number", name))
				return
			}
			set(n)
		}
	}
	number("FAKEPROVIDER_SEED", func(n uint64) { c.Seed = n })
	number("FAKEPROVIDER_PRODUCTS", func(n uint64) { c.Products = int(n) })
	number("FAKEPROVIDER_ORDERS", func(n uint64) { c.Orders = int(n) })
	pairs := func(name string) map[string]string {
		m, err := pairsOf(env(name))
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", name, err))
		}
		return m
	}
	c.FirstStores = pairs("FAKEPROVIDER_STORES")
	if control := env("FAKEPROVIDER_CONTROL"); control != "" {
		c.Forward = &forward.Config{Control: strings.TrimSuffix(control, "/"),
			Tokens: pairs("FAKEPROVIDER_CONNECTOR_TOKENS")}
	}
	return c, errors.Join(faults...)
}

// pairsOf reads "provider:value,…".
func pairsOf(text string) (map[string]string, error) {
	pairs := map[string]string{}
	for part := range strings.SplitSeq(text, ",") {
		if part == "" {
			continue
		}
		name, value, ok := strings.Cut(part, ":")
		if !ok || value == "" {
			return nil, errors.New("must be provider:value,…")
		}
		pairs[name] = value
	}
	return pairs, nil
}
