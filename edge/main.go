//go:debug x509usefallbackroots=1

// Command edge serves the public surface: it records what shoppers did with recommendations, and serves them.
// Without arguments it serves.
package main

import (
	"context"
	"os"
	_ "time/tzdata" // the image holds nothing but this binary

	"storefront.internal/edge/internal/app"
	"storefront.internal/shared/trust"
)

func main() {
	trust.UsePublicRoots()
	os.Exit(app.Main(context.Background(), os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}
