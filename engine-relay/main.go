//go:debug x509usefallbackroots=1

// Command engine-relay owns what happens to shoppers' signals after the edge accepted them: it stores each one once,
// folds carts, queues, and delivers to the engine. Without arguments it serves.
package main

import (
	"context"
	"os"
	_ "time/tzdata" // the image holds nothing but this binary

	"storefront.internal/engine-relay/internal/app"
	"storefront.internal/shared/trust"
)

func main() {
	trust.Public()
	os.Exit(app.Main(context.Background(), os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}
