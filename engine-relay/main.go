//go:debug x509usefallbackroots=1

// Command engine-relay processes signals that the edge accepted: it stores each one once, folds carts, queues
// deliveries, and delivers to the engine. Without arguments it serves.
package main

import (
	"context"
	"os"
	_ "time/tzdata" // the image holds nothing but this binary

	"storefront.internal/engine-relay/internal/app"
	"storefront.internal/shared/trust"
)

func main() {
	trust.UsePublicRoots()
	os.Exit(app.Main(context.Background(), os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}
